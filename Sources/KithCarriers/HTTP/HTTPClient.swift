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
            .untrusted, "\(address.origin) \(CarrierFailure.redirect(to: location)).")
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
      var answer = try connection.send(request, to: origin, login: login, options, work)
      answer.path = String(request.target.prefix { $0 != "?" })
      answer.isAnonymous =
        if case .none = login { !request.headers.contains { $0.name == "Authorization" } } else {
          false
        }
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

/// A request to one server, whose address the client knows.
struct HTTPRequest {
  var method: String
  /// The path with its query, percent-encoded, beginning with a slash.
  var target: String
  var headers: [(name: String, value: String)] = []
  var body: [UInt8]?
  /// Bytes of the answer's body; a longer one fails.
  var limit = CarrierLimits.answerBytes
}

struct HTTPAnswer: Sendable {
  var status: Int
  /// Names in small letters.
  var headers: [(name: String, value: String)]
  var body: [UInt8]
  /// Which ways to sign in the server offers, if it has asked.
  var offered: HTTPAuthentication
  /// The path that was asked for, percent-encoded.
  var path = "/"
  /// Whether the request had no credentials.
  var isAnonymous = false

  /// The first header of a name in small letters.
  func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  var isSuccess: Bool { (200..<300).contains(status) }
}

/// How a request signs in.
enum HTTPLogin: Sendable {
  case none
  case password(user: String, SecretText, HTTPAuthentication)
  case bearer(SecretText)
}

extension CarrierFailure {
  /// The failure that an answer's status stands for, unless the protocol says more. `sent`: the bytes
  /// of the object that was put.
  init(
    _ answer: HTTPAnswer, from address: WebAddress, sent: Int? = nil, now: Int = Int(time(nil))
  ) {
    let (code, text): (Code, String) =
      switch answer.status {
      case let status where answer.isAnonymous && [401, 403, 407].contains(status):
        (
          .denied,
          "asks for credentials, and none were given; add the carrier with them, or give them to one "
            + "that is in use: kith carrier password"
        )
      case 401, 403, 407:
        address.isSecure || HostRules.isLoopback(address.host)
          ? (
            .denied,
            "refuses the credentials; see whether they are right and may write (those of a carrier in "
              + "use are changed with kith carrier password)"
          )
          : (
            .denied,
            "refuses to let this device in: without https a password goes only as a digest, which it "
              + "may not offer; use https"
          )
      case 301...308: (.untrusted, Self.redirect(to: answer.header("location")))
      case 404, 410:
        (.notThere, "has no directory \(answer.path); see whether the address is right")
      case 408, 502, 504: (.unreachable, "does not answer in time; Kith tries again")
      case 413: (.full, Self.tooLarge(sent))
      case 507: (.full, "is full; free space on the storage")
      case 429, 503: (.busy, "asks to wait")
      default: (.unexpected, "gave an unexpected answer")
      }
    let wait =
      code == .busy ? answer.header("retry-after").flatMap { RetryAfter.parse($0, now: now) } : nil
    self.init(code, "\(address.origin) \(text) (status \(answer.status)).", retryAfter: wait)
  }
}

extension CarrierFailure {
  /// Bytes of an address that a message shows.
  private static let shownAddress = 200

  /// The words for a server that redirects to another one. They name its address, unless no person
  /// could give it.
  static func redirect(to location: String?) -> String {
    guard let location, (1...shownAddress).contains(location.utf8.count),
      location.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else {
      return "sends to another server, and not to an address that can be used"
    }
    return "sends to \(location); give that address if it is right"
  }

  /// The failure of a server that has no WebDAV at the path; nil if the status says something else.
  static func noWebDAV(_ answer: HTTPAnswer, at address: WebAddress) -> CarrierFailure? {
    guard [200, 405, 501].contains(answer.status) else { return nil }
    return CarrierFailure(
      .unexpected,
      "There is no WebDAV at \(address.origin)\(answer.path) (status \(answer.status)); see whether "
        + "the address is right, and WebDAV is on there.")
  }

  /// The words for a server that takes no object of so many bytes.
  static func tooLarge(_ sent: Int?) -> String {
    "refuses objects of \(sent.map { "\($0) bytes" } ?? "this size"); let it take some of 16 MiB, such "
      + "as with client_max_body_size (nginx) or LimitRequestBody (Apache)"
  }

  /// `limit`: the most objects of the listing.
  init(_ error: XMLScanner.Malformed, inListingOf origin: String, limit: Int) {
    self =
      error.isTooMuch
      ? .tooMany(limit)
      : CarrierFailure(
        .unexpected, "\(origin) gave a listing that is not whole, at byte \(error.offset).")
  }

  static func tooMany(_ limit: Int) -> Self {
    CarrierFailure(
      .tooMuch,
      "The place holds more than \(limit) objects, or \(CarrierLimits.foreignMembers) other files.")
  }
}

extension HTTPAnswer {
  /// An object out of the answer to GET. The server must say where it ends, else one that broke off
  /// would look whole.
  func object(
    _ name: String, limit: Int, from address: WebAddress
  ) throws(CarrierFailure) -> [UInt8] {
    guard header("content-length") != nil || header("transfer-encoding") != nil else {
      throw CarrierFailure(
        .unexpected, "\(address.origin) does not say how long its answer is.")
    }
    guard body.count <= limit else {
      throw CarrierFailure(.tooMuch, "The object “\(name)” has more than \(limit) bytes.")
    }
    return body
  }
}

/// The header `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The wait that a server asks for, at most ``CarrierLimits/retryAfter``; nil if it is neither a
  /// number of seconds nor a date. `now` is in seconds since 1970.
  static func parse(_ text: String, now: Int) -> Duration? {
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that does not fit is longer than any limit.
      return Int(text).map { min(.seconds($0), CarrierLimits.retryAfter) }
        ?? CarrierLimits.retryAfter
    }
    return seconds(ofDate: text).map {
      min(.seconds(max(0, $0 - now)), CarrierLimits.retryAfter)
    }
  }

  /// Seconds since 1970 of a date as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that servers may
  /// send.
  private static func seconds(ofDate text: String) -> Int? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 6, parts[0].last == ",", parts[5] == "GMT",
      let day = number(parts[1], 1...31), let month = months.firstIndex(of: String(parts[2])),
      let year = number(parts[3], 1970...9999)
    else { return nil }
    let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false)
    guard clock.count == 3, let hour = number(clock[0], 0...23),
      let minute = number(clock[1], 0...59), let second = number(clock[2], 0...60)
    else { return nil }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (Int32(year - 1900), Int32(month), Int32(day))
    (date.tm_hour, date.tm_min, date.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
    return timegm(&date)
  }

  private static func number(_ text: Substring, _ range: ClosedRange<Int>) -> Int? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
      return nil
    }
    return range.contains(number) ? number : nil
  }
}
