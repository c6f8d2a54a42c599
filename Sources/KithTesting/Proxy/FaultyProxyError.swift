/// The error of a ``FaultyProxy`` that could not start, or stopped.
public struct FaultyProxyError: Error, CustomStringConvertible {
  /// The kind of error; kinds may be added.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name.
    public let description: String

    /// The address cannot be listened on: the port is taken, or the host is not of this computer.
    public static let cannotListen = Code(description: "cannotListen")
    /// The configuration is out of bounds.
    public static let invalidConfiguration = Code(description: "invalidConfiguration")
    /// The listening socket failed while the proxy served.
    public static let listenerFailed = Code(description: "listenerFailed")
  }

  /// The kind of error.
  public let code: Code
  /// The cause and the remedy.
  public let message: String
  /// The system's error.
  public let cause: (any Error)?

  /// The code, the message and the cause.
  public var description: String {
    "\(code): \(message)\(cause.map { " (\($0))" } ?? "")"
  }

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }
}
