package import KithCore

extension KithError {
  package init(_ error: StorageError) {
    self.init(
      Code(description: error.code.description), error.message, path: error.path, cause: error)
  }

  /// Returns the body's result, or throws its storage error as a ``KithError``.
  static func mapping<Value>(
    _ body: @autoclosure () throws(StorageError) -> Value
  ) throws(KithError) -> Value {
    do throws(StorageError) {
      return try body()
    } catch {
      throw KithError(error)
    }
  }

  init(_ error: Shell.Unavailable) {
    switch error {
    case .closed: self = .closedNode
    case .storage(let error): self.init(error)
    }
  }

  init(_ error: WriteError) {
    switch error {
    case .revoked: self = .revokedDevice
    case .unknownStore(let store):
      self.init(.unknownStore, "The store \(store) is not open. Open it with Accounts.store first.")
    case .invalidKey(let key, let bytes, let limit):
      self.init(
        .invalidKey,
        bytes == 0
          ? "A key must not be empty."
          : "The key has \(bytes) bytes of UTF-8; at most \(limit) are allowed. Shorten it.",
        key: Key(key))
    case .valueTooLarge(let key, let bytes, let limit):
      self.init(
        .valueTooLarge,
        "The value takes \(bytes) bytes; at most \(limit) are allowed. Split it over several keys.",
        key: Key(key))
    case .tooManyDrafts(let bytes, let limit):
      self.init(
        .tooManyDrafts,
        "The writes that no peer has taken yet would hold \(bytes) bytes; at most \(limit) are kept. "
          + "Let this device meet a peer, or write less at once.")
    case .refusalsNotTaken(let bytes, let limit):
      self.init(
        .refusalsNotTaken,
        "Refused transactions that were not taken hold \(bytes) bytes; at most \(limit) are kept. "
          + "Take them with takeRefusals.")
    case .quotaExceeded(let numbers):
      self.init(
        .quotaExceeded,
        "The store would show \(numbers.askedBytes) of \(numbers.limitBytes) bytes and "
          + "\(numbers.askedKeys) of \(numbers.limitKeys) keys. Remove something first.")
    }
  }

  /// If a write of one key exceeds the quota, the error names that key.
  init(_ error: WriteError, of operations: [KithCore.Operation]) {
    self.init(error)
    if key == nil, operations.count == 1 { key = Key(operations[0].key) }
  }

  init(_ error: OpenError, store: StoreIdentifier) {
    switch error {
    case .policyOutOfBounds:
      self.init(
        .invalidPolicy, "The limits are above Policy.maximum, or negative. Lower them.")
    case .tooManyStores(let limit):
      self.init(
        .tooManyStores,
        "The account has \(limit) stores, and \(store) would be one more. Use fewer.")
    }
  }

  init(_ error: ValueError, key: Key) {
    self.init(.unsupportedValue, "The value cannot be stored: \(error).", key: key, cause: error)
  }

  /// Throws `unexpectedValue` unless a store shows what a write expects.
  static func check(
    _ expected: ExpectedValues, in store: StoreIdentifier, of replica: Replica
  ) throws(KithError) {
    do throws(UnexpectedValue) {
      try replica.check(expected, in: store)
    } catch {
      throw unexpected(error.key, isExpected: error.isExpected, isShown: error.isShown)
    }
  }

  static func unexpected(_ key: Key, isExpected: Bool, isShown: Bool) -> KithError {
    let found = isShown ? "has \(isExpected ? "another" : "a") value" : "is missing"
    return KithError(.unexpectedValue, "The key \(found); nothing was written.", key: key)
  }

  /// Whether the store refused this write, and may accept others.
  package var isRefusal: Bool {
    [Code.invalidKey, .valueTooLarge, .quotaExceeded, .unsupportedValue].contains(code)
  }

  static func unreadable<Value>(_ key: StoreKey<Value>) -> KithError {
    KithError(
      .unreadable,
      "The key shows a value that is no \(Value.self), such as one of another version of the program; "
        + "nothing was written. To replace it all, reset the key first, or set a whole value.",
      key: Key(key.name))
  }

  static let conflict = KithError(
    .conflict,
    "Others changed what the transaction read, at each of \(Limits.commitTries) tries; nothing was "
      + "written. Read less in it, write its keys less often, or try again.")

  static let revokedDevice = KithError(
    .revoked,
    "This device was removed from the account. It keeps what it has read; to write again, remove it "
      + "here and join anew: kith account leave, then kith join.")

  static let closedNode = KithError(.closed, "The node was closed. Open it again.")
}
