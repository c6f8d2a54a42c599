import FoundationEssentials
import Glibc
package import Kith
package import KithTerminal

extension CommandFailure {
  /// Nil for errors of the command line itself.
  init?(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as KithError:
      self.init(CommandStatus(error.code), Self.message(error))
    case let error as ValueTextError: self.init(.refused, "\(error)")
    case let error as ImportError: self.init(.failure, "\(error)")
    case is CancellationError: self.init(.failure, "interrupted")
    case let error as CocoaError: self.init(.failure, Self.message(error))
    default: return nil
    }
  }

  private static func message(_ error: KithError) -> String {
    let key = error.key.map { "\"\(Columns.printable($0.text, limit: 80))\": " } ?? ""
    return key + error.description + advice(error.code)
  }

  /// Returns advice for errors whose own advice is for programs.
  private static func advice(_ code: KithError.Code) -> String {
    switch code {
    case .quotaExceeded: " See: kith ls -lS."
    case .invalidName: " Give another with --name."
    case .unknownStore: " See: kith status."
    default: ""
    }
  }

  private static func message(_ error: CocoaError) -> String {
    let path = error.filePath ?? error.url?.path
    let reason: String =
      switch error.code {
      case .fileReadNoSuchFile, .fileNoSuchFile: "there is no such file"
      case .fileReadNoPermission, .fileWriteNoPermission: "permission denied"
      case .fileWriteOutOfSpace: "no space is left on the disk"
      default:
        (error.underlying as? POSIXError).map { String(cString: strerror($0.code.rawValue)) }
          ?? "it cannot be read or written"
      }
    return path.map { "\($0): \(reason)" } ?? reason
  }
}

extension CommandStatus {
  package init(_ code: KithError.Code) {
    switch code {
    case .invalidKey, .valueTooLarge, .quotaExceeded, .unsupportedValue, .invalidStoreIdentifier,
      .invalidPolicy, .pairingCode, .declined, .recoveryKey, .invalidName, .notAMember,
      .tooManyStores, .revoked, .invalidDevice:
      self = .refused
    case .missing, .alreadyExists, .inUse, .unsafePermissions, .wrongFileType: self = .directory
    case .passphrase: self = .passphrase
    case .unexpectedValue: self = .unexpected
    case .unknownStore: self = .notFound
    case .timedOut, .network, .control, .notRunning: self = .unreachable
    default: self = .failure
    }
  }
}

/// The failures that several commands tell in the same words.
extension CommandFailure {
  /// The failure for a key that a store does not show.
  static func missing(_ key: String, in store: String, isSignedOut: Bool) -> CommandFailure {
    let suffix = isSignedOut ? " of this host, where nobody is signed in" : ""
    return CommandFailure(
      .notFound, "\(quoted(key)) is missing in the store \"\(Columns.printable(store))\"\(suffix)")
  }

  /// The failure for those of several keys that a store does not show.
  static func missing(_ keys: [String], in store: String) -> CommandFailure {
    CommandFailure(
      .notFound,
      "missing in the store \"\(Columns.printable(store))\": "
        + keys.map(quoted).joined(separator: ", "))
  }

  static func signedOut(_ directory: String) -> CommandFailure {
    CommandFailure(
      .directory, "\(directory): nobody is signed in here; \(CommonOptions.signingIn)")
  }

  private static func quoted(_ key: String) -> String {
    "\"\(Columns.printable(key, limit: 80))\""
  }
}
