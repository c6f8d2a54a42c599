internal import Glibc
internal import NIOCore
internal import NIOPosix

/// Why listening or connecting failed, in words for people.
package struct NetworkFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Reason: Hashable, Sendable {
    /// Another socket listens on the port.
    case portTaken
    /// Not an address of this host.
    case notLocal
    /// The system forbids it to this user.
    case forbidden
    /// The host refused the connection.
    case nothingListens
    /// No answer in time.
    case noAnswer
    /// No network of this host leads there.
    case noRoute
    /// The name has no known address.
    case unknownHost
    /// This host lacks the address's protocol, for example IPv6.
    case unsupported
    case other(String)
  }

  /// As it was given.
  package let host: String
  package let port: UInt16
  package let reason: Reason

  package init(host: String, port: UInt16, reason: Reason) {
    self.host = host
    self.port = port
    self.reason = reason
  }

  package init(listeningOn host: String, port: Int, _ error: any Error) {
    let reason: Reason =
      switch (error as? IOError)?.errnoCode {
      case EADDRINUSE: .portTaken
      case EADDRNOTAVAIL: .notLocal
      default: Self.reason(error)
      }
    self.init(host: host, port: UInt16(clamping: port), reason: reason)
  }

  init(connectingTo address: PeerAddress, _ error: any Error) {
    self.init(host: address.host, port: address.port, reason: Self.reason(error))
  }

  private static func reason(_ error: any Error) -> Reason {
    switch error {
    case let error as IOError: reason(error.errnoCode)
    case let error as NIOConnectionError:
      // If a name has several addresses, the host's own answer is the most useful.
      error.connectionErrors.map { reason($0.error) }.min { rank($0) < rank($1) } ?? .unknownHost
    case ChannelError.connectTimeout: .noAnswer
    case is SocketAddressError, is SocketAddressError.UnknownHost: .unknownHost
    case TransportError.shutDown: .other("this node is stopping")
    case is ChannelError: .other("the connection was closed")
    default: .other("\(error)")
    }
  }

  private static func reason(_ code: CInt) -> Reason {
    switch code {
    case ECONNREFUSED: .nothingListens
    case ETIMEDOUT: .noAnswer
    // Without IPv6 a connection to such an address has no source address.
    case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL: .noRoute
    case EACCES, EPERM: .forbidden
    case EAFNOSUPPORT, EPROTONOSUPPORT: .unsupported
    default: .other(IOError.words(code))
    }
  }

  private static func rank(_ reason: Reason) -> Int {
    switch reason {
    case .nothingListens: 0
    case .noAnswer: 1
    case .noRoute, .unsupported: 3
    default: 2
    }
  }

  /// The beginning of a sentence, without a capital letter.
  package var description: String {
    let endpoint = IPAddressText.endpoint(host, port)
    return switch reason {
    case .portTaken: "port \(port) is taken"
    case .notLocal: "\(host) is no address of this host"
    case .forbidden: "the system does not let this user use \(endpoint)"
    case .nothingListens: "nothing listens at \(endpoint)"
    case .noAnswer: "\(endpoint) does not answer"
    case .noRoute: "there is no route to \(endpoint)"
    case .unknownHost: "no address is known for \(host)"
    case .unsupported: "this host has no IPv\(host.contains(":") ? 6 : 4) for \(endpoint)"
    case .other(let words): "\(endpoint): \(words)"
    }
  }
}

extension IOError {
  /// Without the names of its calls.
  var words: String { Self.words(errnoCode) }

  fileprivate static func words(_ code: CInt) -> String { String(cString: strerror(code)) }
}
