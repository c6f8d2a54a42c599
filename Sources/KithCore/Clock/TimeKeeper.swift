internal import KithCrypto

/// The time that a device tells, in its hello and in every `Have`.
package struct ToldTime: Hashable, Sendable {
  /// The generation in which it goes on, and the time that it uses; no counter.
  package var reading: HybridTime
  /// Whether its kernel calls its clock synchronised.
  package var isSynchronised: Bool

  package init(reading: HybridTime, isSynchronised: Bool) {
    self.reading = reading
    self.isSynchronised = isSynchronised
  }
}

/// Decides whose time a device uses, keeps its hybrid clock, and heals that clock if it was wrong
/// (`Docs/Protocol.md`, "Clocks"; `Docs/Decisions/clocks.md` says why).
struct TimeKeeper: Sendable {
  /// The time that a member told.
  struct Claim {
    /// Its time less the reading of our monotonic clock, in milliseconds: no step of our own clock
    /// alters it.
    var aheadOfMonotonic: Int64
    var isSynchronised: Bool
    /// When ``aheadOfMonotonic`` was found, and when the member was last heard, by the monotonic
    /// clock.
    var foundAt: UInt64
    var heardAt: UInt64
  }

  /// The result of healing a hybrid clock that was ahead of a certain time.
  enum Healing: Equatable {
    /// Nothing ahead had left the device: the clock was set back, and drafts later than the time are
    /// to be stamped again.
    case setBack(milliseconds: Int64)
    /// The clock goes on in a new generation.
    case newGeneration(milliseconds: Int64)
    /// The clock needs a new generation, but none is left for now.
    case noneLeft
  }

  var clock = HybridClock()
  /// The latest reading that left this device, or came from elsewhere.
  private var latestShared = HybridTime.zero
  private(set) var claims: [DeviceID: Claim] = [:]
  private(set) var isSynchronised = false
  private var wasSynchronised = false
  private var hasHardware = true

  /// The host's own clocks, at the input at hand.
  private(set) var host = Instant(wallMilliseconds: 0, monotonicMilliseconds: 0)
  /// The time that this device uses.
  private(set) var now = Instant(wallMilliseconds: 0, monotonicMilliseconds: 0)
  /// The device whose time that is; nil: the host's own.
  private(set) var followed: DeviceID?

  // MARK: Whose time

  /// Takes in a reading of the host's clocks.
  mutating func update(at host: Instant) {
    self.host = host
    (now, followed) = time(at: host)
  }

  /// The kernel's opinion of the host's clock, and whether there is hardware that keeps the time
  /// while the host is off.
  mutating func set(isSynchronised: Bool, hasHardware: Bool) {
    self.isSynchronised = isSynchronised
    self.hasHardware = hasHardware
    wasSynchronised = wasSynchronised || isSynchronised
    update(at: host)
  }

  /// Takes in the time that a member tells. A message that was long on its way makes that time seem
  /// earlier than it is. So outside of handshakes, the latest time told counts for a while.
  mutating func note(_ claim: Claim, of device: DeviceID, isHandshake: Bool) {
    var claim = claim
    claims = claims.filter { isRecent($0.value) }
    if !isHandshake, let old = claims[device], old.isSynchronised == claim.isSynchronised,
      old.aheadOfMonotonic > claim.aheadOfMonotonic,
      claim.foundAt < old.foundAt + Limits.latestClaimMilliseconds
    {
      claim.aheadOfMonotonic = old.aheadOfMonotonic
      claim.foundAt = old.foundAt
    }
    claims[device] = claim
    update(at: host)
  }

  /// The time at a reading of the host's clocks, and whose it is; nil: the host's own.
  func time(at host: Instant) -> (now: Instant, followed: DeviceID?) {
    let own = Int64(clamping: host.wallMilliseconds)
    guard !(isSynchronised && Self.isPossible(own)),
      let (device, time) = leader(of: own, at: host)
    else { return (host, nil) }
    return (
      Instant(
        wallMilliseconds: UInt64(time), monotonicMilliseconds: host.monotonicMilliseconds),
      device
    )
  }

  /// The synchronised device whose time is nearest to the own clock's; if that is worthless, and no
  /// such device is known, any device.
  private func leader(of own: Int64, at host: Instant) -> (device: DeviceID, time: Int64)? {
    guard !claims.isEmpty else { return nil }
    typealias Known = (distance: UInt64, time: Int64, device: DeviceID)
    var (synchronised, any): (Known?, Known?) = (nil, nil)
    for (device, claim) in claims where Self.isRecent(claim, at: host) {
      let time = time(of: claim, at: host)
      guard Self.isPossible(time) else { continue }
      let known = ((time - own).magnitude, time, device)
      if any.map({ known < $0 }) ?? true { any = known }
      if claim.isSynchronised, synchronised.map({ known < $0 }) ?? true { synchronised = known }
    }
    let isWorthless = isWorthless(host)
    if let synchronised, isWorthless || synchronised.distance <= Limits.followedMilliseconds {
      return (synchronised.device, synchronised.time)
    }
    return isWorthless ? any.map { ($0.device, $0.time) } : nil
  }

  /// Whether the host's clock cannot be right, or nobody says that it is.
  var isWorthless: Bool { isWorthless(host) }

  private func isWorthless(_ host: Instant) -> Bool {
    let own = Int64(clamping: host.wallMilliseconds)
    return !Self.isPossible(own)
      || own < Int64(clock.latest.milliseconds) - Limits.clockDifferenceMilliseconds
      || !hasHardware && !wasSynchronised
  }

  /// Whether it may be this time: after the software's release, and before 2200.
  static func isPossible(_ time: Int64) -> Bool {
    (Int64(Software.releasedMilliseconds)...Int64(Limits.lastWallMilliseconds)).contains(time)
  }

  /// Whether two times are near enough to exchange stores.
  static func agree(_ left: Int64, _ right: Int64) -> Bool {
    (left - right).magnitude <= Limits.clockDifferenceMilliseconds.magnitude
  }

  private func isRecent(_ claim: Claim) -> Bool { Self.isRecent(claim, at: host) }

  private static func isRecent(_ claim: Claim, at host: Instant) -> Bool {
    host.monotonicMilliseconds < claim.heardAt + Limits.claimMilliseconds
  }

  private func time(of claim: Claim, at host: Instant) -> Int64 {
    claim.aheadOfMonotonic + Int64(clamping: host.monotonicMilliseconds)
  }

  /// The time that a member told, counted on; nil: it was not met for long.
  func time(of device: DeviceID) -> Int64? {
    claims[device].flatMap { isRecent($0) ? time(of: $0, at: host) : nil }
  }

  /// Whether the time that this device uses is right: its kernel says so, or a synchronised device
  /// does and none contradicts.
  var isCertain: Bool {
    let time = Int64(clamping: now.wallMilliseconds)
    guard Self.isPossible(time) else { return false }
    let synchronised = claims.values.filter { $0.isSynchronised && isRecent($0) }
    return isSynchronised
      || !synchronised.isEmpty
        && synchronised.allSatisfy { Self.agree(self.time(of: $0, at: host), time) }
  }

  // MARK: Generations

  /// The time that this device tells.
  func told(at host: Instant) -> ToldTime {
    ToldTime(
      reading: HybridTime(
        generation: generation, milliseconds: time(at: host).now.wallMilliseconds),
      isSynchronised: isSynchronised)
  }

  /// The generation in which this device goes on.
  var generation: UInt8 { max(clock.latest.generation, HybridTime.firstGeneration) }

  /// The latest generation that counts now. They are rationed, so that no member uses them up: by the
  /// host's own clock, or an earlier time that a member told lately. So neither a liar that names a
  /// late year nor an own clock that is years ahead has late generations count. If the own clock is
  /// impossible, they are rationed by the date of the software's release.
  ///
  /// - Complexity: O(*n*) in the claims.
  var generationLimit: UInt8 {
    let own = Int64(clamping: host.wallMilliseconds)
    let told = claims.values.lazy.filter(isRecent).map { time(of: $0, at: host) }
      .filter(Self.isPossible).min()
    let date =
      Self.isPossible(own)
      ? UInt64(min(own, told ?? own)) : Software.releasedMilliseconds
    let since = date - min(date, Limits.generationsSince)
    return UInt8(clamping: 8 + since / Limits.generationMilliseconds)
  }

  /// A member goes on in this generation. Returns whether this device does now, too.
  mutating func hear(generation told: UInt8) -> Bool {
    guard told > generation, told <= generationLimit else { return false }
    clock.witness(HybridTime(generation: told, milliseconds: 0))
    return true
  }

  /// Whether a reading may count at all: its generation is within the ration, and its time no later
  /// than any clock's.
  func counts(_ reading: HybridTime) -> Bool {
    reading.generation <= max(generation, generationLimit)
      && reading.milliseconds <= Limits.lastWallMilliseconds
  }

  /// How long until a batch whose latest publishing clock this is may be applied, in milliseconds;
  /// nil: it may be now.
  func wait(for published: HybridTime) -> Int64? {
    guard published.generation >= generation else { return nil }
    guard counts(published) else { return .max }
    let isRight = isSynchronised && Self.isPossible(Int64(clamping: host.wallMilliseconds))
    if isWorthless, !isRight, followed == nil { return nil }
    let ahead =
      Int64(published.milliseconds) - Int64(clamping: now.wallMilliseconds)
      - Limits.clockDifferenceMilliseconds
    return ahead > 0 ? ahead : nil
  }

  // MARK: The hybrid clock

  /// A new reading.
  mutating func tick() -> HybridTime { clock.tick(at: now) }

  /// A new reading that leaves the device at once.
  mutating func tickForAll() -> HybridTime {
    let reading = tick()
    latestShared = max(latestShared, reading)
    return reading
  }

  /// Takes in a reading from elsewhere.
  mutating func witness(_ reading: HybridTime) {
    clock.witness(reading)
    latestShared = max(latestShared, reading)
  }

  /// By how much the hybrid clock is ahead of the time, in milliseconds.
  var aheadMilliseconds: Int64 {
    Int64(clock.latest.milliseconds) - Int64(clamping: now.wallMilliseconds)
  }

  /// Whether the hybrid clock is so far ahead that it heals once the time is certain.
  var isAhead: Bool { aheadMilliseconds > Limits.healingMilliseconds }

  /// Heals the hybrid clock if it is ahead of a time that is certain.
  ///
  /// - Parameters:
  ///   - published: the latest publishing clock of the change sets that are kept.
  ///   - isAccepted: whether the user says that the time is right.
  /// - Returns: The result; nil: the clock need not heal, or the time is not certain.
  mutating func heal(
    published: () -> HybridTime, isAccepted: Bool = false
  ) -> Healing? {
    let time = Int64(clamping: now.wallMilliseconds)
    guard isAhead, isCertain || isAccepted && Self.isPossible(time) else { return nil }
    let ahead = aheadMilliseconds
    let shared = max(published(), latestShared)
    guard
      shared.generation == generation,
      Int64(shared.milliseconds) > time + Limits.healingMilliseconds
    else {
      // No further: drafts that are earlier than the time keep their stamps.
      let time = HybridTime(generation: generation, milliseconds: now.wallMilliseconds)
      clock = HybridClock(latest: max(shared, time))
      return .setBack(milliseconds: ahead)
    }
    guard generation < generationLimit else { return .noneLeft }
    clock = HybridClock(
      latest: HybridTime(generation: generation + 1, milliseconds: now.wallMilliseconds))
    return .newGeneration(milliseconds: ahead)
  }
}
