import Glibc
import Kith
import Synchronization

/// Sends requests to one server.
final class HTTPClient: Sendable {
  let address: WebAddress
  private let options: CarrierOptions
  private let idle = Mutex<[HTTPConnection]>([])

  init(_ address: WebAddress, _ options: CarrierOptions) {
    self.address = address
    self.options = options
  }

  func send(
    _ request: HTTPRequest, login: HTTPLogin = .none
  ) async throws(CarrierFailure) -> HTTPAnswer {
    try await send(request, login: login) { $0 }
  }

  /// Sends a request and receives its answer, whatever its status. `read` takes that in, on the
  /// request's thread: a document may take long to parse.
  ///
  /// A redirect to the same scheme, host and port is followed with the same method and body, unless
  /// the request is signed for its target.
  ///
  /// - Throws: ``CarrierFailure/Code/untrusted`` for other redirects, untrusted certificates and
  ///   addresses that the options refuse; ``CarrierFailure/Code/tooMuch`` for an answer beyond the
  ///   request's limit; ``CarrierFailure/Code/unreachable`` for one that does not come, or not whole.
  func send<Value: Sendable>(
    _ request: HTTPRequest, login: HTTPLogin = .none, followsRedirects: Bool = true,
    reading read: @escaping @Sendable (HTTPAnswer) throws(CarrierFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    var request = request
    for _ in 0...CarrierLimits.redirects {
      let outcome = try await sendOnce(request, login) {
        answer throws(CarrierFailure) -> Outcome<Value> in
        let isRedirect = [301, 302, 307, 308].contains(answer.status)
        return isRedirect && followsRedirects
          ? .redirect(to: answer.header("location")) : .read(try read(answer))
      }
      switch outcome {
      case .read(let value): return value
      case .redirect(let location):
        guard let location, let target = target(of: location) else {
          throw CarrierFailure(
            .untrusted,
            "\(address.origin) sends to another server; give that address if it is right.")
        }
        request.target = target
      }
    }
    throw CarrierFailure(
      .unexpected, "\(address.origin) redirects more than \(CarrierLimits.redirects) times.")
  }

  private enum Outcome<Value: Sendable>: Sendable {
    case read(Value)
    case redirect(to: String?)
  }

  private func sendOnce<Value: Sendable>(
    _ request: HTTPRequest, _ login: HTTPLogin,
    _ read: @escaping @Sendable (HTTPAnswer) throws(CarrierFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    let curl = try CurlLibrary.get()
    let (origin, options) = (address.origin, options)
    return try await onThread(
      of: BlockingThreads.requests, quiet: options.quiet, longest: options.longest
    ) { work throws(CarrierFailure) in
      let free = self.idle.withLock { $0.popLast() }
      let connection: HTTPConnection
      if let free { connection = free } else { connection = try HTTPConnection(curl) }
      // After a failure, it is closed.
      let answer = try connection.send(request, to: origin, login: login, options, work)
      self.idle.withLock { idle in
        if idle.count < CarrierLimits.idleConnections { idle.append(connection) }
      }
      return try read(answer)
    }
  }

  /// The target of a redirect within the same server; nil for another.
  private func target(of location: String) -> String? {
    if location.hasPrefix("/"), !location.hasPrefix("//") { return checked(location) }
    guard let other = try? WebAddress(location), other.origin == address.origin else { return nil }
    // As the server wrote it: a slash at its end matters.
    let path = location.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" }
    return path.isEmpty ? "/" : checked(String(path))
  }

  private func checked(_ target: String) -> String? {
    let isPlain = target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
    return isPlain && target.utf8.count <= CarrierLimits.addressBytes ? target : nil
  }
}
