import KithCrypto
import Synchronization

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
