internal import KithCore
internal import KithNetwork

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
      self.init(.invalidDevice, "The device was removed from the account before.", cause: error)
    case .ownDevice:
      self.init(
        .invalidDevice, "A device does not remove itself. Do it on another device of the account.",
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
        "The device was removed from the account before. There, run kith account leave, and join by a "
          + "new invitation.", cause: error)
    case .inviterCannotInvite:
      self.init(
        .notAMember,
        "The inviting device can take nobody in: it was removed from the account, or the account has "
          + "had \(MembershipLimits.certificates) devices, as many as it can. See kith devices there.",
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
      case .wrongToken, .expired, .exchangesSpent:
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
