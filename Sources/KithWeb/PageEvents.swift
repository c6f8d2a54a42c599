#if Web
  import AsyncAlgorithms
  import Hummingbird
  import Kith
  import KithCommands
  import KithCore
  import NIOCore
  import ServiceLifecycle
  import Synchronization

  /// One stream of server-sent events: the status, a store's values and changes, and the pairing.
  ///
  /// The next event is made once the browser has taken the one before: a slow browser gets only the
  /// latest status, and changes joined as ``StoreChanges`` joins them.
  struct PageEvents: Sendable {
    /// Before the store is watched again, after its node has ended.
    private static let retryInterval = Duration.milliseconds(200)
    /// From a beat to the next question to the node.
    private static let beatInterval = Duration.seconds(5)
    /// For its answer. The page waits 30 s for something to come.
    private static let longestAnswer = Duration.seconds(10)

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

    /// Watches the store anew once its node has ended, or does not answer.
    private func tellStore(_ channel: AsyncChannel<String>) async {
      while !Task.isCancelled {
        do {
          try await first({ try await watch(channel) }, { try await beat(channel) })
        } catch let error as KithError where error.code != .cancelled {
          let message = Document.object(["message": .string(error.description)])
          await channel.send(Self.event("away", message))
        } catch {}
        try? await Task.sleep(for: Self.retryInterval)
      }
    }

    private func watch(_ channel: AsyncChannel<String>) async throws(KithError) {
      do throws(KithError) {
        try await page.accounts.nodeAccess.watch(store) { values in
          await channel.send(Self.event("values", PageDocuments.values(values, of: store)))
        } onChange: { change in
          await channel.send(Self.event("change", PageDocuments.change(change, of: store)))
        }
      } catch {
        guard error.code == .unknownStore else { throw error }
        await channel.send(Self.event("values", PageDocuments.values([:], of: store)))
        await waitUntilThere()
      }
    }

    /// Sends beats while the node answers: one that hangs closes no connection.
    private func beat(_ channel: AsyncChannel<String>) async throws {
      while true {
        try await Task.sleep(for: Self.beatInterval)
        try await first(
          { _ = try await page.accounts.nodeAccess.status() },
          {
            try await Task.sleep(for: Self.longestAnswer)
            throw KithError(.timedOut, "It did not answer within 10 s. See that it is not stopped.")
          })
        await channel.send(": beat\n\n")
      }
    }

    /// Runs both until one returns or throws, then cancels the other and waits for it.
    private func first(
      _ one: @escaping @Sendable () async throws -> Void,
      _ other: @escaping @Sendable () async throws -> Void
    ) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask(operation: one)
        group.addTask(operation: other)
        defer { group.cancelAll() }
        try await group.next()
      }
    }

    private func waitUntilThere() async {
      for await status in page.accounts.statusUpdates
      where status.stores.contains(where: { $0.identifier.rawValue == store }) { return }
    }
  }

  /// Counts the streams that are open.
  final class OpenStreams: Sendable {
    /// A browser opens six connections to a host: two are left for requests.
    static let limit = 4

    private let count = Mutex(0)

    /// Counts until it is released.
    final class Stream: Sendable {
      private let streams: OpenStreams

      fileprivate init(_ streams: OpenStreams) { self.streams = streams }

      deinit { streams.count.withLock { $0 -= 1 } }
    }

    /// Nil if there are too many. The stream may also be released before it has begun.
    func open() -> Stream? {
      let isFree = count.withLock { count in
        guard count < Self.limit else { return false }
        count += 1
        return true
      }
      return isFree ? Stream(self) : nil
    }
  }
#endif
