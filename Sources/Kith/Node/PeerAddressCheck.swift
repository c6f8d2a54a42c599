internal import KithNetwork

extension Node {
  /// Throws `network`, naming the right form, if a text is no peer's address.
  package static func checkPeer(_ text: String) throws(KithError) {
    do throws(PeerAddressError) {
      _ = try PeerAddress(text)
    } catch {
      throw KithError(.network, "\(error)", path: nil, cause: error)
    }
  }
}
