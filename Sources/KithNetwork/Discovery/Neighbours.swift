internal import KithCore

/// The devices heard on the link. Times are in milliseconds.
struct Neighbours: Sendable {
  private struct Place {
    var address: PeerAddress
    var heardAt: UInt64
  }

  private var places: [DeviceID: [Place]] = [:]

  /// Returns all addresses. A known one keeps its place, so that links do not alternate. A new one
  /// comes first, and may replace the one heard longest ago.
  mutating func heard(_ device: DeviceID, at address: PeerAddress, now: UInt64) -> [PeerAddress] {
    var known = places[device] ?? []
    if let index = known.firstIndex(where: { $0.address == address }) {
      known[index].heardAt = now
    } else {
      if known.count >= NetworkLimits.foundAddresses {
        let oldest = known.indices.min { known[$0].heardAt < known[$1].heardAt }
        if let oldest { known.remove(at: oldest) }
      }
      known.insert(Place(address: address, heardAt: now), at: 0)
    }
    places[device] = known
    return known.map(\.address)
  }

  /// Returns the changed devices with the remaining addresses.
  mutating func expire(now: UInt64) -> [DeviceID: [PeerAddress]] {
    var changed: [DeviceID: [PeerAddress]] = [:]
    for (device, known) in places {
      let kept = known.filter { $0.heardAt + NetworkLimits.foundMilliseconds > now }
      guard kept.count < known.count else { continue }
      changed[device] = kept.map(\.address)
      places[device] = kept.isEmpty ? nil : kept
    }
    return changed
  }

  /// Sorted by id, with the time since each was heard.
  func all(now: UInt64) -> [NodeStatus.Discovery.Neighbour] {
    places.sorted { $0.key < $1.key }.map { device, places in
      let heard = places.map(\.heardAt).max() ?? now
      return NodeStatus.Discovery.Neighbour(
        device: device, addresses: places.map(\.address.description),
        milliseconds: now - min(heard, now))
    }
  }
}
