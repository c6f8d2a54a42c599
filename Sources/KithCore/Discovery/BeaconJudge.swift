internal import KithCrypto

/// Decides which beacons count. Times are in milliseconds.
///
/// A rate limits trial openings and signature checks. Only members are remembered, with a few boots
/// each.
package struct BeaconJudge: Sendable {
  package enum Verdict: Hashable, Sendable {
    /// A member's beacon, new if this boot or source was not seen before.
    case found(Beacon, isNew: Bool)
    case ourselves
    /// No open epoch opens it, or its version is unknown.
    case strange
    /// Its device is not a member, or did not sign it.
    case notAMember
    /// Older than one received before, a replay, or received from too many sources.
    case stale
    /// Not checked: the rate was exceeded.
    case tooMany
  }

  private struct Boot {
    var id: UInt64
    /// The newest beacon.
    var beacon: Beacon
    /// The sources of the newest beacon.
    var sources: [String]
    var knownSources: Set<String>
  }

  private let account: AccountID
  private let device: DeviceID
  private var bucket = TokenBucket(2 * Limits.beaconWorkPerSecond, per: 2_000)
  /// The boots of each device, the one seen last at the end.
  private var boots: [DeviceID: [Boot]] = [:]

  package init(account: AccountID, device: DeviceID) {
    self.account = account
    self.device = device
  }

  /// Judges a datagram from the host `source`. `epochs` are the open ones, newest first.
  ///
  /// - Complexity: at most ``Limits/beaconEpochs`` trial openings and one verification, within the
  ///   rate.
  package mutating func judge(
    _ datagram: [UInt8], from source: String, epochs: [EpochKeys], at now: UInt64,
    isMember: (DeviceID) -> Bool
  ) -> Verdict {
    guard datagram.count == Beacon.byteCount else { return .strange }
    var opened: OpenedBeacon?
    for epoch in epochs.prefix(Limits.beaconEpochs) where opened == nil {
      guard bucket.spend(at: now) else { return .tooMany }
      opened = OpenedBeacon(datagram, epoch: epoch)
    }
    guard let opened else { return .strange }
    let beacon = opened.beacon
    guard beacon.device != device else { return .ourselves }
    guard isMember(beacon.device) else { return .notAMember }
    var known = boots[beacon.device] ?? []
    let index = known.firstIndex { $0.id == beacon.boot }
    let last = index.map { known[$0] }
    if let last {
      guard beacon.counter >= last.beacon.counter else { return .stale }
      if beacon.counter == last.beacon.counter {
        // The same beacon over another link, or a replay: it adds only a source.
        guard beacon == last.beacon, !last.sources.contains(source),
          last.sources.count < Limits.beaconSources
        else { return .stale }
      }
    }
    if beacon != last?.beacon {
      guard bucket.spend(Limits.beaconVerificationWork, at: now) else { return .tooMany }
      guard opened.isSigned(in: account) else { return .notAMember }
    }
    let isNew = !(last?.knownSources.contains(source) ?? false)
    var boot = last ?? Boot(id: beacon.boot, beacon: beacon, sources: [], knownSources: [])
    if beacon != boot.beacon { (boot.beacon, boot.sources) = (beacon, []) }
    boot.sources.append(source)
    if boot.knownSources.count >= Limits.beaconKnownSources { boot.knownSources = [] }
    boot.knownSources.insert(source)
    if let index { known.remove(at: index) }
    known.append(boot)
    if boots[beacon.device] == nil, boots.count >= Limits.beaconDevices { boots = [:] }
    boots[beacon.device] = known.suffix(Limits.beaconBoots)
    return .found(beacon, isNew: isNew)
  }
}
