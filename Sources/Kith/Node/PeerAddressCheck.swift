internal import KithNetwork

extension Node {
  /// Throws `network`, naming the right form, if a text is no peer's address, or the most, if there
  /// are too many.
  package static func checkPeers(_ texts: [String]) throws(KithError) {
    _ = try peerAddresses(texts)
  }

  /// The addresses of `Configuration.peers`; throws as ``checkPeers(_:)``.
  static func peerAddresses(_ texts: [String]) throws(KithError) -> [PeerAddress] {
    var addresses: [PeerAddress] = []
    for text in texts { addresses.append(try peerAddress(text)) }
    guard Set(addresses).count <= NetworkLimits.staticTargets else { throw tooManyPeers }
    return addresses
  }

  /// Adds an address to those of `Configuration.peers` until the node stops.
  func addPeer(_ text: String) throws(KithError) {
    let address = try Self.peerAddress(text)
    guard let transport = transport.withLock({ $0 }) else {
      throw KithError(.notRunning, "The node does not run.")
    }
    guard transport.addTarget(address) else { throw Self.tooManyPeers }
  }

  private static func peerAddress(_ text: String) throws(KithError) -> PeerAddress {
    do throws(PeerAddressError) {
      return try PeerAddress(text)
    } catch {
      throw KithError(.network, "\(error)", path: nil, cause: error)
    }
  }

  private static var tooManyPeers: KithError {
    KithError(
      .network,
      "A node takes at most \(NetworkLimits.staticTargets) addresses of peers. Name fewer: devices "
        + "tell each other the rest.")
  }
}
