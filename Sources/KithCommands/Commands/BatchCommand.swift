import ArgumentParser
import Dispatch
import Kith
import KithCore
import KithTerminal

struct BatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "batch",
    abstract: "Answer a program's requests, as lines of JSON.",
    discussion: """
      A line of standard input is a request, a line of standard output an answer or a change. \
      Writes are answered once they survive a crash; those sent without waiting for answers share \
      a flush of the disk. Ends with its input. The format is in Docs/Batch.md.

        kith batch <<< '{"id": 1, "do": "set", "key": "theme", "value": "dark"}'
      """)

  @OptionGroup var store: WrittenStoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    let console = options.console
    let passphrase = options.passphraseQuestionAskedOnce
    let (name, policy) = try await options.withNode(writes: true, passphrase: passphrase) { node in
      let name = try await store.writable(at: node, console)
      return (name, try await node.usage(of: name).policy)
    }
    var configuration = options.accounts(passphrase: passphrase)
    configuration.discoversPeers = false
    try await Accounts(configuration).use { accounts in
      let batch = Batch(
        store: try accounts.store(name, policy: policy), accounts: accounts, console: console)
      try await withThrowingTaskGroup(of: Void.self) { group in
        // Without a running node, this process serves the directory meanwhile.
        group.addTask { try await accounts.run() }
        group.addTask { try await batch.run() }
        defer { group.cancelAll() }
        try await group.next()
      }
    }
  }
}

/// One run of `kith batch`, from its first line to the end of its input, or until it is cancelled.
private struct Batch: Sendable {
  /// Further ones make the input wait.
  private static let mostWaits = 16

  let store: KeyValueStore
  let accounts: Accounts
  let console: Console
  private let input = DispatchQueue(label: "kith batch input")
  private let output = DispatchQueue(label: "kith batch output")
  private let stop = InputText.Stop()

  func run() async throws {
    let greeting = Document.versioned([
      "format": .string("kith batch"), "software": .string(Software.version),
      "store": .string(store.identifier.rawValue),
    ])
    await print(greeting.text(indented: false))
    try await withThrowingTaskGroup(of: Void.self) { group in
      var (lines, watches, waits, hasEnded) = (BatchLines(), [Task<Void, Never>](), 0, false)
      while !hasEnded {
        let bytes = try await read()
        hasEnded = bytes.isEmpty
        var taken = (hasEnded ? [lines.end()] : lines.take(bytes))[...]
        while !taken.isEmpty {
          let (next, watchesLeft) = (taken, BatchRound.mostWatches - watches.count)
          let round = await input.run {
            BatchRound(next, store: store, accounts: accounts, watchesLeft: watchesLeft)
          }
          taken = round.rest
          if !round.answers.isEmpty { await print(round.answers.joined(separator: "\n")) }
          // After the answer, which has the values before the changes.
          for watch in round.watches { watches.append(Task { await tell(watch) }) }
          for wait in round.waits {
            if waits == Self.mostWaits { try await group.next() } else { waits += 1 }
            group.addTask { await answer(wait) }
          }
        }
      }
      try await group.waitForAll()
      for watch in watches {
        watch.cancel()
        await watch.value
      }
    }
  }

  /// Returns no bytes at the end of the input.
  private func read() async throws -> [UInt8] {
    let bytes = try await withTaskCancellationHandler {
      await input.run {
        Result { () throws(CommandFailure) in try InputText.available(until: stop) }
      }
    } onCancel: {
      stop.raise()
    }.get()
    try Task.checkCancellation()
    return bytes
  }

  private func answer(_ wait: BatchRound.Wait) async {
    do {
      await print(BatchRound.line(wait.id, try await wait.answer()))
    } catch {
      await print(BatchRound.line(wait.id, failure: error))
    }
  }

  private func tell(_ watch: BatchRound.Watch) async {
    for await change in watch.changes {
      guard let report = ChangeReport(change, keys: watch.keys) else { continue }
      await print(BatchRound.line(watch.id, report.document))
    }
  }

  /// In the order of the calls, each whole.
  private func print(_ lines: String) async {
    await output.run { console.dataOrExit(lines) }
  }
}
