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
  /// With ``Code/pairingCode``, how many codes may still be tried; nil if unknown.
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
