internal import KithNetwork

extension Node {
  /// Throws `network`, naming the right form, if a text is no peer's address.
  package static func checkPeer(_ text: String) throws(KithError) { _ = try peerAddress(text) }

  /// Adds an address to those of `Configuration.peers` until the node stops.
  func addPeer(_ text: String) throws(KithError) {
    let address = try Self.peerAddress(text)
    guard let transport = transport.withLock({ $0 }) else {
      throw KithError(.notRunning, "The node does not run.")
    }
    transport.addTarget(address)
  }

  private static func peerAddress(_ text: String) throws(KithError) -> PeerAddress {
    do throws(PeerAddressError) {
      return try PeerAddress(text)
    } catch {
      throw KithError(.network, "\(error)", path: nil, cause: error)
    }
  }
}
