internal import KithCore
internal import KithCrypto

extension Simulation {
  /// Follows the decisions of a device's plan, and repeats later.
  func plan(_ number: DeviceNumber) {
    let device = devices[number]
    guard !device.isGone, device.overlay != nil else { return }
    queue.add(
      .plan(number), at: now + UInt64.random(in: 500_000...2_000_000, using: &networkChance))
    guard isUp(number) else { return }
    var candidates: [DeviceID: DeviceNumber] = [:]
    for other in devices
    where other.original == nil && !other.isGone && other.keys.id != device.keys.id {
      candidates[other.keys.id] = other.number
    }
    let peers = overlayPeers(of: device)
    let drawn = Set(peers.values.filter { $0.origin == .drawn }.compactMap(\.device))
    let connected = Set(peers.values.compactMap(\.device))
    let moment = now / 1_000
    for lost in device.drawnBefore.subtracting(connected).sorted() {
      device.overlay?.lost(lost, at: moment)
    }
    device.drawnBefore = drawn
    guard
      let decision = device.overlay?.decide(
        candidates: candidates.keys.sorted(), peers: peers, at: moment)
    else { return }
    for session in decision.closes { close(session, of: device, because: .surplus) }
    for target in decision.dials.sorted() {
      guard let other = candidates[target], !connected.contains(target) else { continue }
      guard isUp(other), canPass(number, other), canPass(other, number) else {
        device.overlay?.lost(target, at: moment)
        continue
      }
      let handshake = latency() + latency() + latency()
      queue.add(
        .established(number, to: other, lives: [device.life, devices[other].life]),
        at: now + handshake)
    }
  }

  private func overlayPeers(of device: SimulatedDevice) -> [SessionID: OverlayPlan.Peer] {
    var peers: [SessionID: OverlayPlan.Peer] = [:]
    for (session, endpoint) in sessions[device.number] ?? [:] {
      guard let connection = connections[endpoint.connection], connection.isOpen else { continue }
      peers[session] = OverlayPlan.Peer(
        device: devices[connection.pipes[endpoint.end].to].keys.id,
        origin: endpoint.end == 0 ? .drawn : .accepted, openedAt: connection.openedAt / 1_000)
    }
    return peers
  }
}
