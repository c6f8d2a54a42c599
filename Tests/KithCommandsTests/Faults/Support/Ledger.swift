import Foundation
import Kith
import KithTestSupport
import Synchronization

@testable import KithCommands

/// The writes that writers on several nodes asked for, and their results.
final class Ledger: Sendable {
  private struct State {
    var history = History()
    var transactions = 0
    var acknowledged = 0
    var failures: [String] = []
    var isOver = false
    /// The wall clock less the clock that nobody sets, at the least and at the most.
    var wall: ClosedRange<Duration>?
  }

  private let state = Mutex(State())
  private let started = ContinuousClock.now

  /// All writes so far. Stamps follow the host's wall clock: if that was set meanwhile, the order
  /// of writes cannot be told so finely.
  var history: History {
    state.withLock { state in
      var history = state.history
      if let wall = state.wall { history.slack += wall.upperBound - wall.lowerBound }
      return history
    }
  }
  /// How many writes were acknowledged.
  var acknowledged: Int { state.withLock { $0.acknowledged } }
  /// The codes of errors that writers met, refusals aside, in order.
  var failures: [String] { state.withLock { $0.failures } }
  /// Whether the writers are to stop.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Has the writers stop.
  func finish() { state.withLock { $0.isOver = true } }

  fileprivate func nextTransaction() -> Int {
    state.withLock { state in
      state.transactions += 1
      return state.transactions
    }
  }

  fileprivate func failed(_ error: KithError) {
    state.withLock { $0.failures.append("\(error.code)") }
  }

  /// Now, and notes how far the wall clock is off.
  fileprivate func look() -> ContinuousClock.Instant {
    let now = ContinuousClock.now
    let off = Duration.seconds(Date.now.timeIntervalSince1970) - (now - started)
    state.withLock { state in
      state.wall = min(state.wall?.lowerBound ?? off, off)...max(state.wall?.upperBound ?? off, off)
    }
    return now
  }

  fileprivate func add(_ writes: [HistoryWrite]) {
    state.withLock { state in
      state.history.writes += writes
      state.acknowledged += writes.count(where: \.isAcknowledged)
    }
  }
}

/// Writes at random on one node over its control socket, until the ledger is finished.
struct Writer: Sendable {
  let client: LocalClient
  /// The node, as an index.
  let node: Int
  let seed: UInt64
  /// Between two transactions.
  var pause = Duration.milliseconds(1)
  /// One transaction of so many writes 180,000 bytes, so that the quota is met; nil: none does.
  var largeRate: Int? = 60

  /// Records each transaction. After an error that is no refusal it waits until the node answers
  /// again: only then it is sure that the write will not happen later.
  func run(_ ledger: Ledger) async throws {
    var random = SeededGenerator(seed: seed)
    while !ledger.isOver {
      try await write(&random, ledger)
      try await Task.sleep(for: pause)
    }
  }

  private func write(_ random: inout SeededGenerator, _ ledger: Ledger) async throws {
    let transaction = ledger.nextTransaction()
    let asked = transactionOf(transaction, &random)
    let began = ledger.look()
    var isAcknowledged = false
    do {
      try await client.write(asked, in: Household.store)
      isAcknowledged = true
    } catch {
      if error.isRefusal { return }
      ledger.failed(error)
      try await eventually("node \(node) to answer again", seconds: 120) {
        try Task.checkCancellation()
        return (try? await client.status()) != nil
      }
    }
    let ended = ledger.look()
    ledger.add(
      asked.map { key, value in
        HistoryWrite(
          key: key, value: value, node: node, transaction: transaction, began: began,
          ended: ended, isAcknowledged: isAcknowledged)
      })
  }

  /// A random transaction; each value names it.
  private func transactionOf(
    _ number: Int, _ random: inout SeededGenerator
  ) -> [(key: String, value: PropertyListValue?)] {
    let isMany = Int.random(in: 0..<4, using: &random) == 0
    let size = isMany ? Int.random(in: 2...5, using: &random) : 1
    var keys: Set<String> = []
    var writes: [(key: String, value: PropertyListValue?)] = []
    for _ in 0..<size {
      let isLarge = largeRate.map { Int.random(in: 0..<$0, using: &random) == 0 } ?? false
      let key =
        isLarge
        ? "large.\(Int.random(in: 0..<8, using: &random))"
        : "key.\(Int.random(in: 0..<60, using: &random))"
      guard keys.insert(key).inserted else { continue }
      let length = isLarge ? 180_000 : Int.random(in: 0..<200, using: &random)
      let text = "value \(number).\(writes.count) " + String(repeating: "v", count: length)
      let removes = Int.random(in: 0..<6, using: &random) == 0
      writes.append((key, removes ? nil : .string(text)))
    }
    return writes
  }
}

extension Ledger {
  /// Has a writer write on each of the nodes while `body` runs, and ends them.
  func whileWriting(
    _ writers: [Writer], isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in writers { group.addTask { try await writer.run(self) } }
      do { try await body() } catch {
        group.cancelAll()
        throw error
      }
      finish()
      try await group.waitForAll()
    }
  }
}
