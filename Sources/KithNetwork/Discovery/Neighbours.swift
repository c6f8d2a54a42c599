internal import KithCore

/// The devices that were heard on the link, and where. Time, in milliseconds, is an argument.
struct Neighbours: Sendable {
  private struct Place {
    var address: PeerAddress
    var heardAt: UInt64
  }

  private var places: [DeviceID: [Place]] = [:]

  /// A device was heard at an address; gives all of its addresses. One that was known keeps its place,
  /// so that several links take no turns; a new one comes first, and the one heard the longest ago goes.
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

  /// Forgets where nothing was heard for long; gives the devices that it changes, with what they keep.
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

  /// The devices, by id, with their addresses and how long ago they were heard, in milliseconds.
  func all(now: UInt64) -> [DiscoveryStatus.Neighbour] {
    places.sorted { $0.key < $1.key }.map { device, places in
      let heard = places.map(\.heardAt).max() ?? now
      return DiscoveryStatus.Neighbour(
        device: device, addresses: places.map(\.address.description),
        milliseconds: now - min(heard, now))
    }
  }
}
