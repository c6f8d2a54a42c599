// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

internal import CKith
internal import Kith
internal import KithCore
internal import Synchronization

/// A `kith_transaction`.
// Unchecked: a transaction's notes of its reads are an object without a lock; `lock` guards it.
final class Transaction: Handled, @unchecked Sendable {
  private let lock = Mutex(())
  private let store: Store?
  /// Nil: it is over.
  private var transaction: KeyValueStore.Transaction?

  /// One that the program commits.
  init(of store: Store) throws(KithError) {
    self.store = store
    transaction = try store.opened().begin()
  }

  /// One that is lent to a body.
  init(lending transaction: KeyValueStore.Transaction) {
    store = nil
    self.transaction = transaction
  }

  func use<Result>(
    _ body: (inout KeyValueStore.Transaction) throws(KithError) -> Result
  ) throws(KithError) -> Result {
    var result: Result?
    try lock.withLock { (_: inout Void) throws(KithError) in
      guard var lent = transaction.take() else {
        throw KithError.invalid("The transaction is over. Begin a new one.")
      }
      defer { transaction = lent }
      result = try body(&lent)
    }
    guard let result else { preconditionFailure("a body returned nothing") }
    return result
  }

  /// Ends it.
  func take() -> KeyValueStore.Transaction? {
    var taken: KeyValueStore.Transaction?
    lock.withLock { _ in taken = transaction.take() }
    return taken
  }

  func commit() throws(KithError) {
    guard let store else {
      throw .invalid("The transaction is committed by kith_store_commit(). Return true.")
    }
    let isWritten = try CallingThread.run { () async throws(KithError) in
      guard let transaction = self.take() else {
        throw .invalid("The transaction is over. Begin a new one.")
      }
      return try await store.opened().commit(transaction)
    }
    guard isWritten else {
      throw KithError(
        .conflict,
        "Others changed what the transaction read; nothing was written. Begin a new one.")
    }
  }
}

/// The bodies of `kith_store_commit()`.
private enum Body {
  /// Whether this thread calls one. A commit within it might wait for ever for its turn to try again,
  /// which the outer one has.
  @TaskLocal static var isCalled = false
}

private func transaction(_ pointer: Pointer) throws(KithError) -> Transaction {
  try Argument.object(pointer, "transaction")
}

@c @implementation
public func kith_store_begin(_ store: Pointer, _ error: ErrorOut) -> Pointer {
  new(error) { try Transaction(of: Argument.object(store, "store")) }
}

@c @implementation
public func kith_transaction_commit(_ pointer: Pointer, _ error: ErrorOut) -> Bool {
  succeeds(error) { try transaction(pointer).commit() }
}

@c @implementation
public func kith_store_commit(
  _ store: Pointer, _ body: (@convention(c) (Pointer, UnsafeMutableRawPointer?) -> Bool)?,
  _ context: UnsafeMutableRawPointer?, _ error: ErrorOut
) -> Bool {
  succeeds(error) {
    guard !Body.isCalled else {
      throw KithError.invalid(
        "A transaction's body called kith_store_commit(), which might wait for ever. Commit after it, or "
          + "call kith_store_begin().")
    }
    let store = try Argument.object(store, "store", Store.self).opened()
    guard let body else { throw KithError.invalid("The argument body is NULL.") }
    // It is used on this thread alone.
    nonisolated(unsafe) let context = context
    try CallingThread.run { () async throws(KithError) in
      try await store.commit { (transaction) throws(KithError) in
        let lent = Transaction(lending: transaction)
        guard let handle = Registry.shared.add(lent, isBorrowed: true) else { throw .noHandlesLeft }
        let isWanted = Body.$isCalled.withValue(true) { body(handle.pointer, context) }
        _ = Registry.shared.remove(handle, isOwner: true)
        guard isWanted, let used = lent.take() else {
          throw KithError(.cancelled, "The transaction's body returned false; nothing was written.")
        }
        transaction = used
      }
    }
  }
}

@c @implementation
public func kith_transaction_get(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    let key = try Argument.key(key, length)
    return try transaction(pointer).use { $0.value(forKey: key) }
  }
}

@c @implementation
public func kith_transaction_snapshot(
  _ pointer: Pointer, _ prefix: Text, _ length: Int, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let prefix = try Argument.prefix(prefix, length)
    return HeldValue(try transaction(pointer).use { $0.values(prefix: prefix) })
  }
}

@c @implementation
public func kith_transaction_expect(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ value: Pointer, _ error: ErrorOut
) -> Bool {
  succeeds(error) {
    let (key, value) = (try Argument.key(key, length), try Argument.value(value))
    try transaction(pointer).use { transaction throws(KithError) in
      try transaction.expect(value, forKey: key)
    }
  }
}

@c @implementation
public func kith_transaction_set(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ value: Pointer, _ error: ErrorOut
) -> Bool {
  succeeds(error) {
    let (key, value) = (try Argument.key(key, length), try Argument.value(value))
    try transaction(pointer).use { transaction in
      if let value {
        transaction.set(value, forKey: key)
      } else {
        transaction.removeValue(forKey: key)
      }
    }
  }
}
