internal import KithNetwork

extension Node {
  /// Checks that a text is a peer's address, as ``Configuration/peers`` takes them.
  ///
  /// - Throws: ``KithError`` with `network`, which says the right form.
  package static func checkPeer(_ text: String) throws(KithError) {
    do throws(PeerAddressError) {
      _ = try PeerAddress(text)
    } catch {
      throw KithError(.network, "\(error)", path: nil, cause: error)
    }
  }
}
