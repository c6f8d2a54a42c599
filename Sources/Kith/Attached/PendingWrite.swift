internal import KithCore

/// A write that an attached program showed and the node has not answered. Where the connection
/// ends, whoever stands behind the store next writes it again: it may have been committed already,
/// and then says the same once more.
struct PendingWrite: Sendable {
  /// Who waits for it to be durable.
  typealias Waiter = CheckedContinuation<AttachedStore.Turn, Never>

  /// What was written; it stands or falls together.
  let operations: [KithCore.Operation]
  fileprivate(set) var waiter: Waiter?

  init(operations: [KithCore.Operation], waiter: Waiter?) {
    self.operations = operations
    self.waiter = waiter
  }

  /// Whether somebody waits for it to be durable.
  var isAwaited: Bool { waiter != nil }

  /// Tells who waits for it, if anybody does. To be called once, from no lock.
  func settle(_ result: Result<Void, KithError>) {
    waiter?.resume(returning: .settled(result))
  }

  /// Lets go of who waits for it, to tell them without knowing its fate.
  mutating func takeWaiter() -> Waiter? { waiter.take() }
}
