import KithCrypto
import Synchronization

/// Decides which requests the page's server answers.
///
/// The server listens on loopback, which every program and every page of every browser on this
/// computer reaches. So a request must show that it comes from the page itself:
///
/// - `Host`, or the host that the target names, is the server's own address: a foreign page whose
///   name was made to lead here (DNS rebinding) sends its own name.
/// - `Origin` and `Sec-Fetch-Site`, if sent, are those of the page.
/// - The cookie, which browsers send only for pages of this site (`SameSite=Strict`), and which no
///   script reads (`HttpOnly`).
/// - The key, in a header. Browsers send a cookie to every port of a host, so a server of another
///   user would get it; they keep the key to the page's own port.
struct PageGuard: Sendable {
  struct Request {
    var method: String
    var path: String
    /// The values of the fields `Host`; or the one host of an absolute target (``TargetHostHandler``).
    var hosts: [String]
    var origin: String?
    var fetchSite: String?
    var contentType: String?
    var cookie: String?
    var key: String?
  }

  enum Outcome: Equatable {
    /// A file of the page, or a request with both secrets.
    case allowed
    /// The request that trades the token for the secrets.
    case tradesToken
    /// It names several hosts.
    case ambiguous
    /// `Host`, `Origin` or `Sec-Fetch-Site` are not the page's.
    case foreign
    /// No page sends such a body without asking first.
    case wrongContentType
    /// A secret is missing or wrong.
    case noCredentials
  }

  static let keyHeader = "X-Kith-Key"

  /// The name has the port: a browser keeps one cookie of a name for all ports, so two pages would
  /// replace each other's.
  let cookieName: String
  /// The address of the server, `host:port`. Not `localhost`, which may lead to `::1`, where another
  /// user may have a server.
  private let host: String
  private let credentials: PageCredentials

  init(port: Int, credentials: PageCredentials) {
    cookieName = "kith-page-\(port)"
    // Browsers leave out the usual port.
    host = port == 80 ? "127.0.0.1" : "127.0.0.1:\(port)"
    self.credentials = credentials
  }

  func judge(_ request: Request) -> Outcome {
    guard request.hosts.count <= 1 else { return .ambiguous }
    guard request.hosts == [host] else { return .foreign }
    guard [nil, "http://\(host)"].contains(request.origin) else { return .foreign }
    guard request.path.hasPrefix("/api/") else { return .allowed }
    guard ["same-origin", nil].contains(request.fetchSite) else { return .foreign }
    // Foreign pages may send other methods than GET, HEAD and POST only after asking.
    if request.method == "POST" {
      let types = ["application/json", "application/octet-stream"]
      let type = request.contentType?.prefix { $0 != ";" }.lowercased() ?? ""
      guard types.contains(type) else { return .wrongContentType }
    }
    if request.path == "/api/token" { return .tradesToken }
    return credentials.areHeld(cookie: request.cookie, key: request.key) ? .allowed : .noCredentials
  }
}

/// The secrets of one run of the page: a token that is traded once, for the cookie and the key that
/// the browser then shows with each request. Memory keeps their digests.
final class PageCredentials: Sendable {
  private enum State {
    case awaited(token: Digest256)
    case traded(cookie: Digest256, key: Digest256)
  }

  private let state: Mutex<State>

  /// The token, in hexadecimal, is for the fragment of the page's address, which browsers send to no
  /// server.
  static func make(_ entropy: inout some Entropy) -> (credentials: PageCredentials, token: String) {
    let token = secret(&entropy)
    return (PageCredentials(.awaited(token: digest(token))), token)
  }

  private init(_ state: State) { self.state = Mutex(state) }

  /// Returns cookie and key for the first caller with the token; nil for all others.
  func trade(
    _ token: String, _ entropy: inout some Entropy
  ) -> (cookie: String, key: String)? {
    let (cookie, key) = (Self.secret(&entropy), Self.secret(&entropy))
    return state.withLock { state in
      guard case .awaited(let awaited) = state, Self.is(token, awaited) else { return nil }
      state = .traded(cookie: Self.digest(cookie), key: Self.digest(key))
      return (cookie, key)
    }
  }

  func areHeld(cookie: String?, key: String?) -> Bool {
    guard let cookie, let key, case .traded(let ourCookie, let ourKey) = state.withLock({ $0 })
    else {
      return false
    }
    return Self.is(cookie, ourCookie) && Self.is(key, ourKey)
  }

  /// 256 bits, in hexadecimal.
  private static func secret(_ entropy: inout some Entropy) -> String {
    entropy.draw(Digest256.self).hex
  }

  private static func digest(_ text: String) -> Digest256 { Blake2b.digest256(Array(text.utf8)) }

  /// Comparing digests tells nothing of the texts by the time that it takes.
  private static func `is`(_ text: String, _ wanted: Digest256) -> Bool { digest(text) == wanted }
}
