public import KithCore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An error of Kith, with the reason, the limit and the remedy. It never holds a value.
///
/// A refused call changes nothing (`Docs/CommandLine.md`).
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
public struct KithError: Error, Sendable {
  /// The kind of error. It is a struct, so a new code breaks no caller.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed, logged and sent over the control socket.
    public let description: String

    /// Makes a code with a name.
    package init(description: String) {
      self.description = description
    }
  }

  /// The kind of error.
  public var code: Code
  /// The reason and the remedy, in one or two sentences.
  public var message: String
  /// The key concerned. Keys are private to the store: print it, but do not log it.
  public var key: String?
  /// The device concerned.
  public var device: DeviceID?
  /// The file, directory or address concerned.
  public var path: String?
  /// The process that has the directory open, with ``Code/inUse``.
  public var owner: Int32?
  /// The amount that the caller asked for, in the unit of ``limit``.
  public var actual: Int?
  /// The amount that is allowed.
  public var limit: Int?
  /// The number of codes that may still be tried with the invitation, with ``Code/pairingCode``.
  ///
  /// Nil if unknown.
  public var triesLeft: Int?
  /// The numbers of ``Code/quotaExceeded``.
  public var quota: QuotaNumbers?
  /// The underlying error, if there is one.
  public var cause: (any Error)?

  package init(
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
  /// The message, which includes the remedy; `localizedDescription` is the same.
  public var errorDescription: String? { message }
}
