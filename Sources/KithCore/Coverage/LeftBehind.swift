/// The members that lack change sets: since when, for the status; and those that stay behind, for the
/// network, which dials them.
struct LeftBehind {
  /// The vectors that a member lacked part of when it was last up to date with all earlier data.
  private struct Lag {
    /// When that was, by the wall clock.
    var sinceMilliseconds: UInt64
    var vectors: [StoreIdentifier: [ChainID: UInt64]]
  }

  private var lags: [DeviceID: Lag] = [:]
  /// When each store's vector last changed, by the monotonic clock.
  private var changedAt: [StoreIdentifier: UInt64] = [:]
  /// When ``find(at:among:except:connected:_:vectors:)`` next looks, by the monotonic clock.
  private var nextLookAt: UInt64 = 0
  /// The members found last, by id.
  private var found: [DeviceID] = []

  mutating func forget(_ device: DeviceID) { lags[device] = nil }

  /// A store's vector has changed.
  mutating func noteChange(of store: StoreIdentifier, at now: UInt64) { changedAt[store] = now }

  /// Since when a device lacks part of these vectors that it still lacks; nil: it covers them.
  mutating func lag(
    of device: DeviceID, behind vectors: [StoreIdentifier: [ChainID: UInt64]],
    _ known: [DeviceID: Coverage.Known], at milliseconds: UInt64
  ) -> UInt64? {
    func covers(_ vectors: [StoreIdentifier: [ChainID: UInt64]]) -> Bool {
      vectors.allSatisfy { known.covers($0.value, of: $0.key, device) }
    }
    if covers(vectors) {
      lags[device] = nil
    } else if lags[device].map({ covers($0.vectors) }) ?? true {
      lags[device] = Lag(sinceMilliseconds: milliseconds, vectors: vectors)
    }
    return lags[device]?.sinceMilliseconds
  }

  /// Looks at intervals for unconnected members that lack part of vectors which have not changed for
  /// ``Limits/leftBehindMilliseconds``.
  ///
  /// - Returns: The members, by id, if they are others than before; otherwise nil.
  mutating func find(
    at now: UInt64, among members: some Sequence<DeviceID>, except own: DeviceID,
    connected: Set<DeviceID>, _ known: [DeviceID: Coverage.Known],
    vectors: () -> [StoreIdentifier: [ChainID: UInt64]]
  ) -> [DeviceID]? {
    guard now >= nextLookAt else { return nil }
    nextLookAt = now + Limits.haveIntervalMilliseconds
    let settled = vectors().filter {
      now >= (changedAt[$0.key] ?? 0) + Limits.leftBehindMilliseconds
    }
    let behind = members.filter { device in
      device != own && !connected.contains(device)
        && !settled.allSatisfy { known.covers($0.value, of: $0.key, device) }
    }.sorted()
    guard behind != found else { return nil }
    found = behind
    return behind
  }
}
