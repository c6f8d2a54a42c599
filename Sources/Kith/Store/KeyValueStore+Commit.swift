internal import KithCore
internal import Synchronization

extension KeyValueStore {
  /// Writes several keys as one transaction, and returns once it survives a crash.
  ///
  /// ```swift
  /// try await store.commit {
  ///   $0[.theme] = .dark
  ///   $0[.window].width += 100
  /// }
  /// ```
  /// The body is called on the caller's actor, if there is one. It reads the store as it was then.
  /// If another task, program or device changes a key that the body read through `$0` before the
  /// writes are accepted, nothing is written, and the body runs again. So no update is lost among the
  /// programs of this host.
  ///
  /// The body may therefore run several times: let it compute, and act on what commit returns. A
  /// read that is not made through `$0` is not checked. A body that writes nothing runs once. Tasks
  /// may share a commit to the disk.
  ///
  /// Between devices there is no lock: if two write one key before either hears of the other, the
  /// later write wins.
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written.
  /// - Returns: The body's result.
  /// - Throws: ``KithError`` as ``set(_:forKey:)-(_,String)`` does, `conflict` if others changed what the body
  ///   read at each of 1,000 tries, or the body's error.
  /// - Complexity: O(*w* log *k*) in the writes and the store's keys, O(*n*) in the size of the values
  ///   read.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var hasTurn = false
    defer { if hasTurn { retries.giveBack() } }
    for _ in 0..<Limits.commitTries {
      var transaction = KeyValueStore.Transaction(base: view.values)
      let result = try body(&transaction)
      let (operations, expected) = (try transaction.operations(), try transaction.expectation())
      if try await commit(operations, expecting: expected) { return result }
      // One task at a time tries again: many that met would keep each other from being accepted.
      if !hasTurn { await retries.take() }
      hasTurn = true
    }
    throw .conflict
  }

  /// Writes several keys as one transaction, with a body that may throw any error.
  ///
  /// ```swift
  /// try await store.commit {
  ///   guard $0[.credits] >= price else { throw ShopError.tooFewCredits }
  ///   $0[.credits] -= price
  /// }
  /// ```
  /// If another task or program of this host spends the credits first, the body runs again, and
  /// throws. Another device may spend the same credits at the same time; then the later write wins.
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written. It may run several times.
  /// - Returns: The body's result.
  /// - Throws: The body's error, or ``KithError`` as ``set(_:forKey:)-(_,String)`` does, or `conflict` if others
  ///   changed what the body read at each of 1,000 tries.
  /// - Complexity: O(*w* log *k*) in the writes and the store's keys, O(*n*) in the size of the values
  ///   read.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws -> Result
  ) async throws -> Result {
    try await commit { (transaction) throws(KithError) in transaction.attempt(body) }.get()
  }

  /// Writes one transaction of encoded values; false if the store shows other values than expected.
  private nonisolated(nonsending) func commit(
    _ operations: [KithCore.Operation], expecting expected: ExpectedValues
  ) async throws(KithError) -> Bool {
    guard !operations.isEmpty else { return true }
    do throws(KithError) {
      try await awaitingService { service async throws(KithError) in
        try await service.writeDurably(identifier, operations, expecting: expected)
      }
      return true
    } catch {
      guard error.code == .unexpectedValue else { throw error }
      return false
    }
  }
}

/// Lets in one task at a time, in order of arrival.
final class TaskQueue: Sendable {
  private struct State {
    var isTaken = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Returns once the tasks before have given back their turn, also if the task is cancelled.
  nonisolated(nonsending) func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.isTaken { state.waiters.append(continuation) }
        defer { state.isTaken = true }
        return !state.isTaken
      }
      if isFree { continuation.resume() }
    }
  }

  func giveBack() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.isTaken = !state.waiters.isEmpty
      return state.isTaken ? state.waiters.removeFirst() : nil
    }
    next?.resume()
  }
}
