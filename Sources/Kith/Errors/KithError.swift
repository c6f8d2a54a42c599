public import KithCore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// What Kith refuses, with what is allowed and what to do. It never holds a value.
///
/// Every refusal leaves the state as it was (`Docs/CommandLine.md`).
public struct KithError: Error, Sendable {
  /// What went wrong. A struct, so that a new code breaks nobody.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed, logged and sent over the control socket.
    public let description: String

    /// Makes a code of its name.
    package init(description: String) {
      self.description = description
    }
  }

  /// What went wrong.
  public var code: Code
  /// What happened and what to do, in one or two sentences.
  public var message: String
  /// The key that it is about. Private to the store: print it, do not log it.
  public var key: String?
  /// The device that it is about.
  public var device: DeviceID?
  /// The file, directory or address that it is about.
  public var path: String?
  /// The process that owns the directory, with ``Code/inUse``.
  public var owner: Int32?
  /// What was asked for, in the unit of ``limit``.
  public var actual: Int?
  /// What is allowed.
  public var limit: Int?
  /// How many more codes may be tried at the invitation, with ``Code/pairingCode``; nil: unknown.
  public var triesLeft: Int?
  /// The numbers of ``Code/quotaExceeded``.
  public var quota: QuotaNumbers?
  /// The error underneath, if there is one.
  public var cause: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, _ message: String, key: String? = nil, device: DeviceID? = nil,
    path: String? = nil, owner: Int32? = nil, actual: Int? = nil, limit: Int? = nil,
    quota: QuotaNumbers? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.key = key
    self.device = device
    self.path = path
    self.owner = owner
    self.actual = actual
    self.limit = limit
    self.quota = quota
    self.cause = cause
  }
}

extension KithError: CustomStringConvertible {
  /// The path, if there is one, and the message.
  public var description: String {
    path.map { "\($0): \(message)" } ?? message
  }
}

extension KithError: LocalizedError {
  /// The message, which says what to do as well: `localizedDescription` is the same.
  public var errorDescription: String? { message }
}
