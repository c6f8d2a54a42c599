import KithCrypto
import Synchronization

/// The secrets of one run of the page: a token that begins the session once, and what the browser
/// then shows with each request.
final class PageSession: Sendable {
  /// In the fragment of the page's address, which browsers send to no server.
  let token: String
  private let cookie: String
  private let key: String
  private let isUsed = Mutex(false)

  init(entropy: inout some Entropy) {
    token = Self.secret(&entropy)
    cookie = Self.secret(&entropy)
    key = Self.secret(&entropy)
  }

  /// Returns the session's secrets for the first caller with the token; nil for all others.
  func begin(with token: String) -> (cookie: String, key: String)? {
    guard Self.areEqual(token, self.token) else { return nil }
    let isFirst = isUsed.withLock { isUsed in
      defer { isUsed = true }
      return !isUsed
    }
    return isFirst ? (cookie, key) : nil
  }

  func isOpened(byCookie cookie: String?, key: String?) -> Bool {
    guard let cookie, let key, isUsed.withLock({ $0 }) else { return false }
    let hasCookie = Self.areEqual(cookie, self.cookie)
    return Self.areEqual(key, self.key) && hasCookie
  }

  /// 256 bits, in hexadecimal.
  private static func secret(_ entropy: inout some Entropy) -> String {
    entropy.draw(Digest256.self).hex
  }

  private static func areEqual(_ one: String, _ other: String) -> Bool {
    constantTimeEquals(Array(one.utf8), Array(other.utf8))
  }
}
