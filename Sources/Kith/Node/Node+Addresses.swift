internal import KithCore
internal import KithNetwork
internal import NIOCore

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

  /// The address as the status shows it: with its port.
  package static func addressText(_ text: String) throws(KithError) -> String {
    try peerAddress(text).description
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

  /// Adds an address to those of `Configuration.peers` until the node stops, calls it at once, and
  /// waits until that call ends or the time passes.
  ///
  /// - Returns: The address, with the outcome of the call; without one if the call goes on.
  func meet(_ text: String, waiting wait: Duration) async throws(KithError) -> NodeStatus.Address {
    let address = try Self.peerAddress(text)
    guard let transport = transport.withLock({ $0 }) else {
      throw KithError(.notRunning, "The node does not run.")
    }
    let before = transport.named(address)?.ended ?? 0
    guard transport.addTarget(address) else { throw Self.tooManyPeers }
    transport.hurry(address)
    let isOver: @Sendable () -> Bool = {
      transport.named(address).map { $0.isConnected || $0.ended > before } ?? true
    }
    let isInTime = await engine.progress.wait(timeout: wait, until: isOver)
    var named = transport.named(address) ?? DialledAddress(address: address)
    if !isInTime { named.attempt = nil }
    return status(of: named, engine.state.withLock { $0.shell.replica.status().peers })
  }

  /// Stops calling an address, and forgets it; durable on return.
  func forget(address text: String) async throws(KithError) {
    let address = try Self.peerAddress(text)
    transport.withLock { $0 }?.removeTarget(address)
    try await engine.handInDurably(.forgetAddress(address.description))
    engine.progress.raise()
  }

  /// The addresses that this node calls, and those that it remembers.
  ///
  /// - Complexity: O(*n* log *n*) in the addresses.
  func addresses(
    beside devices: [NodeStatus.Device], _ peers: [NodeStatus.Peer]
  ) -> [NodeStatus.Address] {
    let dialled = transport.withLock { $0 }?.dialledAddresses ?? []
    var addresses = dialled.map { status(of: $0, peers) }
    // A named address at which a device was met is remembered too.
    let named = Set(addresses.filter { $0.source == .named }.map { [$0.address, $0.device?.hex] })
    addresses.removeAll { $0.source != .named && named.contains([$0.address, $0.device?.hex]) }
    let known = Set(addresses.map { [$0.address, $0.device?.hex] })
    for device in devices where device.isMember && !device.isThisDevice {
      for text in device.addresses where !known.contains([text, device.id.hex]) {
        addresses.append(
          NodeStatus.Address(address: text, source: .remembered, device: device.id))
      }
    }
    return addresses
  }

  private func status(
    of dialled: DialledAddress, _ peers: [NodeStatus.Peer]
  ) -> NodeStatus.Address {
    let source: NodeStatus.Address.Source =
      dialled.device == nil ? .named : dialled.isOnlyHeard ? .heard : .remembered
    let address = dialled.address.description
    let met = dialled.key.flatMap { key in engine.read { $0.roster.device(withTransportKey: key) } }
    // The other side may have dialled: then no call has met a key there.
    let connected = dialled.isConnected ? peers.last { $0.address == address }?.device : nil
    var status = NodeStatus.Address(
      address: address, source: source, device: dialled.device ?? met ?? connected)
    status.triedMilliseconds = dialled.attempt?.milliseconds
    if dialled.isConnected {
      status.outcome = .met
    } else if let attempt = dialled.attempt {
      status.outcome = attempt.failure.map(NodeStatus.Address.Outcome.init) ?? .met
      status.reason = attempt.failure?.words(of: dialled.address)
    }
    return status
  }
}

extension Transport {
  /// An address that a person named, with its last call.
  fileprivate func named(_ address: PeerAddress) -> DialledAddress? {
    dialledAddresses.first { $0.device == nil && $0.address == address }
  }
}

extension NodeStatus.Address.Outcome {
  fileprivate init(_ failure: DialFailure) {
    self =
      switch failure {
      case .unreachable(.nothingListens): .nothingListens
      case .unreachable(.noAnswer): .noAnswer
      case .unreachable(.noRoute), .unreachable(.unsupported): .noRoute
      case .unreachable(.unknownHost): .unknownHost
      case .unreachable: .failed
      case .refused: .notOfAccount
      case .anotherDevice: .anotherDevice
      case .noRoom: .sessionLimit
      case .noKey: .failed
      case .ourselves: .thisDevice
      }
  }
}

extension DialFailure {
  /// The beginning of a sentence, without a capital letter.
  fileprivate func words(of address: PeerAddress) -> String {
    switch self {
    case .unreachable(let reason):
      NetworkFailure(host: address.host, port: address.port, reason: reason).description
    case .refused:
      "\(address) does not prove to be a device of this account: another account or program is "
        + "there, or it hangs"
    case .anotherDevice: "another device of the account answers at \(address)"
    case .noRoom: "this node has reached its limit of \(NetworkLimits.sessions) sessions"
    case .noKey: "this device was revoked, and calls no other"
    case .ourselves: "\(address) is this device itself"
    }
  }
}

/// This host's own addresses, as another device may reach them.
enum LocalAddresses {
  static let limit = 8

  /// Hosts to name, best first: those listened on, or all of the host's if the node listens on any.
  static func hosts(listeningOn hosts: [String]) -> [String] {
    let fixed = hosts.filter { $0 != "::" && $0 != "0.0.0.0" }
    if fixed.count == hosts.count { return Array(fixed.prefix(limit)) }
    let devices = (try? System.enumerateDevices()) ?? []
    let texts = devices.compactMap { $0.address?.ipAddress }
      // Link-local addresses are useless without an interface.
      .filter { !$0.hasPrefix("fe80:") && !$0.contains("%") }
    let (loopback, global) = (texts.filter(isLoopback), texts.filter { !isLoopback($0) })
    return Array((global.sorted { $0.count < $1.count } + loopback + fixed).prefix(limit))
  }

  static func isLoopback(_ address: String) -> Bool {
    address == "::1" || address == "localhost" || address.hasPrefix("127.")
  }
}
