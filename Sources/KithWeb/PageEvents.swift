#if Web
  import AsyncAlgorithms
  import Hummingbird
  import Kith
  import KithCommands
  import KithCore
  import NIOCore
  import ServiceLifecycle

  /// One stream of server-sent events: the status, a store's values and changes, and the pairing.
  ///
  /// The next event is made once the browser has taken the one before: a slow browser gets only the
  /// latest status, and changes joined as ``StoreChanges`` joins them.
  struct PageEvents: Sendable {
    /// Before the store is watched again, after its node has ended.
    private static let retryInterval = Duration.milliseconds(200)
    private static let beatInterval = Duration.seconds(10)

    let page: Page
    let store: String

    func write(to writer: inout any ResponseBodyWriter) async throws {
      let channel = AsyncChannel<String>()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          // The server waits for its answers, so that an endless one must end with it.
          try? await gracefulShutdown()
          channel.finish()
        }
        group.addTask { await tellStatus(channel) }
        group.addTask { await tellStore(channel) }
        group.addTask { await tellPairing(channel) }
        group.addTask {
          while !Task.isCancelled {
            try await Task.sleep(for: Self.beatInterval)
            await channel.send(": beat\n\n")
          }
        }
        defer { group.cancelAll() }
        for await event in channel { try await writer.write(ByteBuffer(string: event)) }
      }
    }

    private static func event(_ name: String, _ document: Document?) -> String {
      // A document has no line feed: texts in it are escaped.
      "event: \(name)\ndata: \(document?.text(indented: false) ?? "null")\n\n"
    }

    /// Ends the stream once the accounts are closed.
    private func tellStatus(_ channel: AsyncChannel<String>) async {
      for await status in page.accounts.statusUpdates {
        await channel.send(Self.event("status", page.document(status)))
      }
      channel.finish()
    }

    private func tellPairing(_ channel: AsyncChannel<String>) async {
      for await () in page.pairing.changed {
        await channel.send(Self.event("pairing", page.pairing.state?.document))
      }
    }

    private func tellStore(_ channel: AsyncChannel<String>) async {
      while !Task.isCancelled {
        do throws(KithError) {
          try await page.accounts.nodeAccess.watch(store) { values in
            await channel.send(Self.event("values", PageDocuments.values(values, of: store)))
          } onChange: { change in
            await channel.send(Self.event("change", PageDocuments.change(change, of: store)))
          }
        } catch {
          if error.code == .unknownStore {
            await channel.send(Self.event("values", PageDocuments.values([:], of: store)))
            await waitUntilThere()
          } else if error.code != .cancelled {
            let message = Document.object(["message": .string(error.description)])
            await channel.send(Self.event("away", message))
          }
        }
        try? await Task.sleep(for: Self.retryInterval)
      }
    }

    private func waitUntilThere() async {
      for await status in page.accounts.statusUpdates
      where status.stores.contains(where: { $0.identifier.rawValue == store }) { return }
    }
  }
#endif
