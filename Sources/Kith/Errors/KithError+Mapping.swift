package import KithCore
internal import KithNetwork

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
        "The account has \(limit) stores, and \(store) would be one more. Put its keys into a store "
          + "that is there, under a prefix: stores cannot be removed.")
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

  package static let revokedDevice = KithError(
    .revoked,
    "This device was revoked. It keeps what it has read; to write again, remove it here and join "
      + "anew: kith account leave, then kith join.")

  static let closedNode = KithError(.closed, "The node was closed. Open it again.")
}

extension KithError {
  init(_ error: MembershipError) {
    switch error {
    case .invalidName: self.init(invalidName: error)
    case .mistakableName:
      self.init(
        .invalidName,
        "The name looks like another device's, and is not the same. Choose one that people can tell "
          + "apart.",
        cause: error)
    case .notAMember:
      self.init(
        .revoked,
        "This device is no member of the account any more, and cannot change who is one.",
        cause: error)
    case .unknownDevice:
      self.init(.invalidDevice, "The account has no such device.", cause: error)
    case .alreadyRevoked:
      self.init(.invalidDevice, "The device was revoked before.", cause: error)
    case .ownDevice:
      self.init(
        .invalidDevice, "A device does not revoke itself. Do it on another device of the account.",
        cause: error)
    case .tooManyRecords:
      self.init(
        .invalidDevice,
        "The account's roster is full, or the device enrolled too many devices "
          + "that stay.", cause: error)
    case .wrongRecoveryKey:
      self.init(
        .recoveryKey, "The recovery key is another account's. Use the one of this account.",
        cause: error)
    default:
      self.init(.damaged, "The account's records are unusable: \(error).", cause: error)
    }
  }

  init(_ error: JoinError) {
    switch error {
    case .invalidName: self.init(invalidName: error)
    case .mistakableName:
      self.init(
        .invalidName,
        "The device's name looks like that of another device, and is not the same: it was refused. Have "
          + "it join under another name.",
        cause: error)
    case .declined:
      self.init(
        .declined, "The other device declined. Ask its person, and try a new invitation.",
        cause: error)
    case .notACertificate, .notSelfSigned, .invalidKeys:
      self.init(
        .notAMember,
        "The joining device sent no valid request. Bring Kith up to date there, and make a new "
          + "invitation.", cause: error)
    case .keysInUse:
      self.init(
        .notAMember,
        "The joining device showed keys of another device, and was refused. There, run "
          + "kith account leave, and join by a new invitation.", cause: error)
    case .revoked:
      self.init(
        .notAMember,
        "The device was revoked before. There, run kith account leave, and join by a new "
          + "invitation.", cause: error)
    case .inviterCannotInvite:
      self.init(
        .notAMember,
        "The inviting device can admit nobody: it was revoked, or the account has had "
          + "\(MembershipLimits.certificates) devices, as many as it can. See kith devices there.",
        cause: error)
    case .wrongAccount, .inviterNotMember:
      self.init(
        .notAMember,
        "The inviting device did not show that it is a member of the account to which it invites. "
          + "Nothing was kept. Have another device of the account invite.", cause: error)
    case .notMember, .noEpoch:
      self.init(
        .notAMember,
        "The inviting device's answer does not let this device read the account's data. Nothing was "
          + "kept. Bring Kith up to date there, or have another device of the account invite.",
        cause: error)
    }
  }

  private init(invalidName error: any Error) {
    self.init(
      .invalidName,
      "A device's name has 1 to 64 bytes of UTF-8, and no control characters or unseen ones.",
      cause: error)
  }

  /// Makes the error for a failed pairing, from any thrown error.
  init(pairing error: any Error) {
    switch error {
    case let error as KithError: self = error
    case let error as JoinError: self.init(error)
    case is CancellationError: self.init(.cancelled, "The pairing was cancelled.")
    case let error as PairingError:
      switch error {
      case .wrongToken, .expired, .exchangesSpent, .invitationOver:
        self.init(.pairingCode, "\(error).", cause: error)
      case .triesExhausted:
        self.init(.pairingCode, "\(error).", cause: error)
        triesLeft = 0
      case .wrongCode(_, let left):
        self.init(.pairingCode, "\(error).", cause: error)
        triesLeft = left
      default: self.init(.network, "\(error).", cause: error)
      }
    case let error as NetworkFailure: self.init(listening: error)
    default: self.init(.network, "The pairing failed: \(error).", cause: error)
    }
  }

  init(listening failure: NetworkFailure) {
    let advice =
      switch failure.reason {
      case .portTaken: "Choose another port, or stop the program that listens there."
      case .notLocal: "Listen on one of its own addresses, or on all of them."
      case .forbidden: "Ports below 1024 are the administrator's: choose another."
      case .unsupported: "Listen on 0.0.0.0, or on all addresses."
      default: "Choose another address to listen on."
      }
    self.init(.network, "Cannot listen: \(failure). \(advice)", cause: failure)
  }
}
