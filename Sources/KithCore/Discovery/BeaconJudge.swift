public import KithCrypto

/// Decides which beacons count. Time, in milliseconds, is an argument.
///
/// Whatever comes costs little and leaves little behind: trial openings and signatures are bounded by
/// a rate, and only members are remembered, with a few boots each.
public struct BeaconJudge: Sendable {
  /// What became of a datagram.
  public enum Verdict: Hashable, Sendable {
    /// A member's. It is new where this boot of it, or this source, was not heard before.
    case found(Beacon, isNew: Bool)
    /// This device's own.
    case ourselves
    /// Nobody's that shares an open epoch, or of a version that is not known.
    case strange
    /// Not of a member, or not signed by the device that it names.
    case notAMember
    /// Older than one that was heard, or heard from many places already.
    case stale
    /// Too much came; it was not looked at.
    case tooMany
  }

  /// One boot of a device.
  private struct Boot {
    var id: UInt64
    /// The newest.
    var beacon: Beacon
    /// Where the newest came from.
    var sources: [String]
    var knownSources: Set<String>
  }

  private let account: AccountID
  private let device: DeviceID
  private var bucket = TokenBucket(
    tokens: 2 * Limits.beaconWorkPerSecond, perSecond: Limits.beaconWorkPerSecond)
  /// Of each device, the boot heard last at the end.
  private var boots: [DeviceID: [Boot]] = [:]

  /// Judges for a device of an account.
  public init(account: AccountID, device: DeviceID) {
    self.account = account
    self.device = device
  }

  /// Judges a datagram.
  ///
  /// - Parameters:
  ///   - datagram: What came.
  ///   - source: The host that it came from.
  ///   - epochs: The open epochs, the newest first; of the later ones only so many are tried.
  ///   - now: The time.
  ///   - isMember: Whether a device is a member now.
  /// - Returns: What became of it.
  /// - Complexity: at most ``Limits/beaconEpochs`` trial openings and one verification, within the rate.
  public mutating func judge(
    _ datagram: [UInt8], from source: String, epochs: [EpochKeys], at now: UInt64,
    isMember: (DeviceID) -> Bool
  ) -> Verdict {
    guard datagram.count == Beacon.byteCount else { return .strange }
    var opened: OpenedBeacon?
    for epoch in epochs.prefix(Limits.beaconEpochs) where opened == nil {
      guard bucket.take(at: now) else { return .tooMany }
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
        // The same one over another link, or told again: it says no more than the first.
        guard beacon == last.beacon, !last.sources.contains(source),
          last.sources.count < Limits.beaconSources
        else { return .stale }
      }
    }
    if beacon != last?.beacon {
      guard bucket.take(Limits.beaconVerificationWork, at: now) else { return .tooMany }
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
