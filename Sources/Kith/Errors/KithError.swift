public import FoundationEssentials
public import KithCrypto

/// An error of Kith, with the reason, the limit and the remedy.
///
/// It never holds a value. A refused call changes nothing (`Docs/CommandLine.md`).
///
/// ```swift
/// do throws(KithError) {
///   try store.set(picture, for: .portrait)
/// } catch {
///   switch error.code {
///   case .quotaExceeded, .valueTooLarge: print(error.message)
///   default: throw error
///   }
/// }
/// ```
public struct KithError: Error, Codable, Sendable {
  /// The kind of error: a struct, so that a new code breaks no caller.
  public struct Code: Codable, Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed, logged and sent over the control socket.
    public let description: String

    package init(description: String) {
      self.description = description
    }
  }

  /// The kind of error.
  public var code: Code
  /// The reason and the remedy, in one or two sentences.
  public var message: String
  /// The key concerned, which may be printed but not logged: keys are private to the store.
  public var key: KeyValueStore.Key?
  /// The device concerned.
  public var device: DeviceID?
  /// The file, directory or address concerned.
  public var path: String?
  /// The number of codes that may still be tried, with ``Code/pairingCode``; nil if unknown.
  public var triesLeft: Int?
  /// The underlying error, if any; it is not encoded.
  public var cause: (any Error)?

  private enum CodingKeys: CodingKey {
    case code, message, key, device, path, triesLeft
  }

  package init(
    _ code: Code, _ message: String, key: KeyValueStore.Key? = nil,
    device: DeviceID? = nil, path: String? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.key = key
    self.device = device
    self.path = path
    self.cause = cause
  }
}

extension KithError: CustomStringConvertible {
  /// The message, after the path if there is one.
  public var description: String {
    path.map { "\($0): \(message)" } ?? message
  }
}

extension KithError: LocalizedError {
  /// The text that `localizedDescription` gives: ``description``.
  public var errorDescription: String? { description }
}

extension KithError.Code {
  // Reading and writing.

  /// The key is empty, invalid UTF-8, or longer than the policy allows.
  public static let invalidKey = Self(description: "invalidKey")
  /// The value is larger than the policy allows.
  public static let valueTooLarge = Self(description: "valueTooLarge")
  /// The values would not all be shown.
  public static let quotaExceeded = Self(description: "quotaExceeded")
  /// Property lists cannot hold the value, or it is nested too deeply.
  public static let unsupportedValue = Self(description: "unsupportedValue")
  /// The store identifier is empty, too long, or holds control characters.
  public static let invalidStoreIdentifier = Self(description: "invalidStoreIdentifier")
  /// A limit of the policy is negative or above `Policy.maximum`.
  public static let invalidPolicy = Self(description: "invalidPolicy")
  /// The account has as many stores as a node allows.
  public static let tooManyStores = Self(description: "tooManyStores")
  /// A key does not show the value that the write expects.
  public static let unexpectedValue = Self(description: "unexpectedValue")
  /// Others changed what a transaction read, at each of its tries.
  public static let conflict = Self(description: "conflict")
  /// The key shows a value that its type cannot read, so a part of it cannot be changed.
  public static let unreadable = Self(description: "unreadable")
  /// The store was not opened.
  public static let unknownStore = Self(description: "unknownStore")
  /// The node was closed.
  public static let closed = Self(description: "closed")
  /// The node runs already.
  public static let alreadyRunning = Self(description: "alreadyRunning")
  /// The call needs a running node.
  public static let notRunning = Self(description: "notRunning")
  /// The timeout passed.
  public static let timedOut = Self(description: "timedOut")
  /// The task was cancelled.
  public static let cancelled = Self(description: "cancelled")

  // Storage.

  /// The disk is full.
  public static let diskFull = Self(description: "diskFull")
  /// The file system or directory cannot be written.
  public static let readOnly = Self(description: "readOnly")
  /// A file is damaged; it is never recreated silently.
  public static let damaged = Self(description: "damaged")
  /// The file was written by a newer version.
  public static let newerSchema = Self(description: "newerSchema")
  /// The file was written by a version before the first release.
  public static let olderSchema = Self(description: "olderSchema")
  /// A file is where a directory belongs, a directory where a file belongs, or it is a link.
  public static let wrongFileType = Self(description: "wrongFileType")
  /// Another process has the directory open.
  public static let inUse = Self(description: "inUse")
  /// The directory holds no device.
  public static let missing = Self(description: "missing")
  /// The directory already holds a device.
  public static let alreadyExists = Self(description: "alreadyExists")
  /// Modes or owner let others read secrets.
  public static let unsafePermissions = Self(description: "unsafePermissions")
  /// A passphrase is needed or wrong.
  public static let passphrase = Self(description: "passphrase")
  /// Another error of the operating system.
  public static let inputOutput = Self(description: "inputOutput")

  // Account and network.

  /// A device is not a member of the account.
  public static let notAMember = Self(description: "notAMember")
  /// This device was revoked: it can read, but not write.
  public static let revoked = Self(description: "revoked")
  /// The account has no such device, or this device cannot be changed in this way.
  public static let invalidDevice = Self(description: "invalidDevice")
  /// The recovery key belongs to another account, or is mistyped.
  public static let recoveryKey = Self(description: "recoveryKey")
  /// The pairing code is wrong, mistyped, used up or too old.
  public static let pairingCode = Self(description: "pairingCode")
  /// The other side, or the person asked, declined.
  public static let declined = Self(description: "declined")
  /// This device runs twice: its directory was copied.
  public static let cloned = Self(description: "cloned")
  /// This device was copied or restored too often to publish.
  public static let tooManyIncarnations = Self(description: "tooManyIncarnations")
  /// Two devices with equal vectors hold different states: a defect.
  public static let diverged = Self(description: "diverged")
  /// Removals were forgotten, or soon will be, that a device has not seen.
  public static let removalsUnseen = Self(description: "removalsUnseen")
  /// Another device's clock differs too much from the time here.
  public static let clocksDiffer = Self(description: "clocksDiffer")
  /// The device stamps writes ahead of the time, so peers refuse them.
  public static let dataAhead = Self(description: "dataAhead")
  /// An address cannot be listened on, or a peer cannot be reached.
  public static let network = Self(description: "network")
  /// The other side of the control socket has the wrong identity, or broke the protocol.
  public static let control = Self(description: "control")
  /// A name is empty or too long.
  public static let invalidName = Self(description: "invalidName")
}
