/// The error of a ``FaultyProxy`` that could not start, or stopped.
package struct FaultyProxyError: Error, CustomStringConvertible {
  /// The kind of error; kinds may be added.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name.
    package let description: String

    /// The address cannot be listened on: the port is taken, or the host is not of this computer.
    package static let cannotListen = Code(description: "cannotListen")
    /// The configuration is out of bounds.
    package static let invalidConfiguration = Code(description: "invalidConfiguration")
    /// The listening socket failed while the proxy served.
    package static let listenerFailed = Code(description: "listenerFailed")
  }

  /// The kind of error.
  package let code: Code
  /// The cause and the remedy.
  package let message: String
  /// The system's error.
  package let cause: (any Error)?

  /// The code, the message and the cause.
  package var description: String {
    "\(code): \(message)\(cause.map { " (\($0))" } ?? "")"
  }

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }
}
