internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Why an address could not be listened on or reached, in words for people.
public struct NetworkFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// What went wrong.
  public enum Reason: Hashable, Sendable {
    /// Another socket of this host listens on the port.
    case portTaken
    /// The address to listen on is none of this host's.
    case notLocal
    /// The system does not let this user listen there, or connect.
    case forbidden
    /// The host answered that nothing listens on the port.
    case nothingListens
    /// Nothing answered in time.
    case noAnswer
    /// No network of this host leads there.
    case noRoute
    /// No address is known for the host's name.
    case unknownHost
    /// This host has no protocol for such addresses, such as IPv6.
    case unsupported
    /// Anything else, in the system's words.
    case other(String)
  }

  /// The host, as it was given.
  public let host: String
  /// The TCP port.
  public let port: UInt16
  /// What went wrong.
  public let reason: Reason

  package init(host: String, port: UInt16, reason: Reason) {
    self.host = host
    self.port = port
    self.reason = reason
  }

  /// Why a listener was not bound.
  init(listeningOn host: String, port: Int, _ error: any Error) {
    let reason: Reason =
      switch error {
      case let error as IOError:
        switch error.errnoCode {
        case EADDRINUSE: .portTaken
        case EADDRNOTAVAIL: .notLocal
        default: Self.reason(error.errnoCode)
        }
      default: Self.reason(error)
      }
    self.init(host: host, port: UInt16(clamping: port), reason: reason)
  }

  /// Why no connection was made.
  init(connectingTo address: PeerAddress, _ error: any Error) {
    self.init(host: address.host, port: address.port, reason: Self.reason(error))
  }

  private static func reason(_ error: any Error) -> Reason {
    switch error {
    case let error as IOError: reason(error.errnoCode)
    case let error as NIOConnectionError:
      // Of several addresses of one name the host's own answer says the most.
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
    // Without IPv6 a connection to such an address has no address of its own.
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

  /// What happened, as the beginning of a sentence without a capital letter.
  public var description: String {
    let host = self.host.contains(":") ? "[\(self.host)]" : self.host
    let place = "\(host):\(port)"
    return switch reason {
    case .portTaken: "port \(port) is taken"
    case .notLocal: "\(self.host) is no address of this host"
    case .forbidden: "the system does not let this user use \(place)"
    case .nothingListens: "nothing listens at \(place)"
    case .noAnswer: "\(place) does not answer"
    case .noRoute: "there is no route to \(place)"
    case .unknownHost: "no address is known for \(self.host)"
    case .unsupported: "this host has no IPv\(self.host.contains(":") ? 6 : 4) for \(place)"
    case .other(let words): "\(place): \(words)"
    }
  }
}

extension IOError {
  /// What the system says, without the names of its calls.
  var words: String { Self.words(errnoCode) }

  fileprivate static func words(_ code: CInt) -> String { String(cString: strerror(code)) }
}
