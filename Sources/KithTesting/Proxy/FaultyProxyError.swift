/// Why a ``FaultyProxy`` could not begin, or stopped.
public struct FaultyProxyError: Error, CustomStringConvertible {
  /// What went wrong; more may be added.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// Its name.
    public let description: String

    /// The address cannot be listened on: another program has the port, or the host is not this one's.
    public static let cannotListen = Code(description: "cannotListen")
    /// The configuration is out of bounds.
    public static let invalidConfiguration = Code(description: "invalidConfiguration")
    /// The listening socket failed while the proxy served.
    public static let listenerFailed = Code(description: "listenerFailed")
  }

  /// What went wrong.
  public let code: Code
  /// What it was about, and what to do.
  public let message: String
  /// What the system said.
  public let cause: (any Error)?

  /// The code, the message and the cause.
  public var description: String {
    "\(code): \(message)\(cause.map { " (\($0))" } ?? "")"
  }

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }
}
