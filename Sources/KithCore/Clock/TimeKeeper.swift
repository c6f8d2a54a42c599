/// A reading of a device's clock, sent in its hello and in every `Have`.
package struct ClockReading: Hashable, Sendable {
  /// The device's generation and the time that it uses; the counter is zero.
  package var reading: HybridTime
  package var isSynchronised: Bool

  package init(reading: HybridTime, isSynchronised: Bool) {
    self.reading = reading
    self.isSynchronised = isSynchronised
  }
}

/// Decides whose time a device uses, keeps its hybrid clock, and heals that clock
/// (`Docs/Protocol/clocks.md`; reasons in `Docs/Decisions/clocks.md`).
struct TimeKeeper: Sendable {
  struct MemberTime {
    /// Its time minus our monotonic clock, in milliseconds: steps of our own clock do not alter it.
    var aheadOfMonotonic: Int64
    var isSynchronised: Bool
    /// Monotonic times: of ``aheadOfMonotonic``, and of the member's last message.
    var foundAt: UInt64
    var receivedAt: UInt64
  }

  enum Healing: Equatable {
    /// The clock was set back, because nothing ahead had left the device; drafts after the time
    /// need new stamps.
    case setBack(milliseconds: Int64)
    case newGeneration(milliseconds: Int64)
    /// The clock needs a new generation, but none is available now. Reported once per process.
    case noneLeft
  }

  var clock = HybridClock()
  /// The latest reading that left this device or came from elsewhere.
  private var latestShared = HybridTime.zero
  private(set) var memberTimes: [DeviceID: MemberTime] = [:]
  private(set) var isSynchronised = false
  private var wasSynchronised = false
  private(set) var hasHardware = true
  private var lacksGeneration = false
  /// When to check again whether a clock that is ahead can heal.
  private var healAt: UInt64?

  /// The host's own clocks at the current input.
  private(set) var host = Instant(wallMilliseconds: 0, monotonicMilliseconds: 0)
  private(set) var now = Instant(wallMilliseconds: 0, monotonicMilliseconds: 0)
  /// The device whose time ``now`` is; nil for the host's own.
  private(set) var followed: DeviceID?

  // MARK: Whose time

  mutating func update(at host: Instant) {
    self.host = host
    (now, followed) = time(at: host)
  }

  /// Sets whether the kernel calls the clock synchronised, and whether hardware keeps the time
  /// while the host is off.
  mutating func set(isSynchronised: Bool, hasHardware: Bool) {
    self.isSynchronised = isSynchronised
    self.hasHardware = hasHardware
    wasSynchronised = wasSynchronised || isSynchronised
    update(at: host)
  }

  /// Notes a member's clock. A delayed message makes it seem earlier, so except in handshakes the
  /// latest time counts for a while.
  mutating func note(_ memberTime: MemberTime, of device: DeviceID, isHandshake: Bool) {
    var memberTime = memberTime
    memberTimes = memberTimes.filter { isRecent($0.value) }
    if !isHandshake, let old = memberTimes[device], old.isSynchronised == memberTime.isSynchronised,
      old.aheadOfMonotonic > memberTime.aheadOfMonotonic,
      memberTime.foundAt < old.foundAt + Limits.latestMemberTimeMilliseconds
    {
      memberTime.aheadOfMonotonic = old.aheadOfMonotonic
      memberTime.foundAt = old.foundAt
    }
    memberTimes[device] = memberTime
    update(at: host)
  }

  /// A device is no member any more.
  mutating func forget(_ device: DeviceID) {
    guard memberTimes.removeValue(forKey: device) != nil else { return }
    update(at: host)
  }

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

  /// The synchronised device whose time is nearest to the own clock's; any device if the own clock
  /// is worthless and none is synchronised.
  private func leader(of own: Int64, at host: Instant) -> (device: DeviceID, time: Int64)? {
    guard !memberTimes.isEmpty else { return nil }
    typealias Known = (distance: UInt64, time: Int64, device: DeviceID)
    var (synchronised, any): (Known?, Known?) = (nil, nil)
    for (device, memberTime) in memberTimes where Self.isRecent(memberTime, at: host) {
      let time = time(of: memberTime, at: host)
      guard Self.isPossible(time) else { continue }
      let known = ((time - own).magnitude, time, device)
      if any.map({ known < $0 }) ?? true { any = known }
      if memberTime.isSynchronised, synchronised.map({ known < $0 }) ?? true {
        synchronised = known
      }
    }
    let isWorthless = isWorthless(host)
    if let synchronised, isWorthless || synchronised.distance <= Limits.followedMilliseconds {
      return (synchronised.device, synchronised.time)
    }
    return isWorthless ? any.map { ($0.device, $0.time) } : nil
  }

  /// Whether the host's clock cannot be right (data that is taken in is never so far ahead of a right
  /// one), or has neither hardware nor a synchronised past.
  var isWorthless: Bool { isWorthless(host) }

  private func isWorthless(_ host: Instant) -> Bool {
    let own = Int64(clamping: host.wallMilliseconds)
    return !Self.isPossible(own)
      || own < Int64(clock.latest.milliseconds) - Limits.publishedAheadMilliseconds
      || !hasHardware && !wasSynchronised
  }

  /// Whether a time is between the software's release and 2200.
  static func isPossible(_ time: Int64) -> Bool {
    (Int64(Software.releasedMilliseconds)...Int64(Limits.lastWallMilliseconds)).contains(time)
  }

  /// Whether two times are near enough to exchange stores.
  static func agree(_ left: Int64, _ right: Int64) -> Bool {
    (left - right).magnitude <= Limits.clockDifferenceMilliseconds.magnitude
  }

  private func isRecent(_ memberTime: MemberTime) -> Bool { Self.isRecent(memberTime, at: host) }

  private static func isRecent(_ memberTime: MemberTime, at host: Instant) -> Bool {
    host.monotonicMilliseconds < memberTime.receivedAt + Limits.memberTimeMilliseconds
  }

  private func time(of memberTime: MemberTime, at host: Instant) -> Int64 {
    memberTime.aheadOfMonotonic + Int64(clamping: host.monotonicMilliseconds)
  }

  /// A member's time, advanced to now; nil if it sent none lately.
  func time(of device: DeviceID) -> Int64? {
    memberTimes[device].flatMap { isRecent($0) ? time(of: $0, at: host) : nil }
  }

  /// Whether the kernel, or a synchronised device that none contradicts, says that the time in use
  /// is right.
  var isCertain: Bool {
    let time = Int64(clamping: now.wallMilliseconds)
    guard Self.isPossible(time) else { return false }
    let synchronised = memberTimes.values.filter { $0.isSynchronised && isRecent($0) }
    return isSynchronised
      || !synchronised.isEmpty
        && synchronised.allSatisfy { Self.agree(self.time(of: $0, at: host), time) }
  }

  // MARK: Differences

  /// The milliseconds by which a member's time is ahead of this device's.
  func offset(of memberTime: MemberTime) -> Int64 {
    time(of: memberTime, at: host) - Int64(clamping: now.wallMilliseconds)
  }

  /// Whether stores may be exchanged with a member of this time.
  ///
  /// A delayed message makes the member seem behind, and a member that is behind learns it itself.
  /// So a clock behind ours is judged only in a handshake and when an exchange begins.
  func agrees(with memberTime: MemberTime, isHandshake: Bool) -> Bool {
    let (theirs, ours) = (time(of: memberTime, at: host), Int64(clamping: now.wallMilliseconds))
    return Self.agree(theirs, ours) || !isHandshake && theirs < ours
      || !Self.isPossible(theirs) || !Self.isPossible(ours)
  }

  /// The outcome of a difference, by whose clock the kernel calls synchronised.
  func outcome(isTheirsSynchronised: Bool) -> NodeStatus.ClockDifference.Outcome {
    switch (isSynchronised, isTheirsSynchronised) {
    case (true, true): .bothSynchronised
    case (false, false): .neitherSynchronised
    case (true, false): .theyAreTooFar
    case (false, true): followed == nil ? .tooFar : .anotherIsNearer
    }
  }

  // MARK: Generations

  func clockReading(at host: Instant) -> ClockReading {
    ClockReading(
      reading: HybridTime(
        generation: generation, milliseconds: time(at: host).now.wallMilliseconds),
      isSynchronised: isSynchronised)
  }

  var generation: UInt8 { max(clock.latest.generation, HybridTime.firstGeneration) }

  /// The latest generation that counts now, in O(*n*) in the members' times.
  ///
  /// Generations are limited by date, so that no member uses them up: by the earliest of the host's
  /// own clock and the clocks that members sent lately. So neither a lying member nor an own clock
  /// years ahead makes late generations count. If the own clock is impossible, the date is the
  /// software's release.
  var generationLimit: UInt8 {
    let own = Int64(clamping: host.wallMilliseconds)
    let theirs = memberTimes.values.lazy.filter(isRecent).map { time(of: $0, at: host) }
      .filter(Self.isPossible).min()
    let date =
      Self.isPossible(own)
      ? UInt64(min(own, theirs ?? own)) : Software.releasedMilliseconds
    let since = date - min(date, Limits.generationsSince)
    return UInt8(clamping: 8 + since / Limits.generationMilliseconds)
  }

  /// Follows a member's generation. Returns whether this device's generation changed.
  mutating func follow(generation theirs: UInt8) -> Bool {
    guard theirs > generation, theirs <= generationLimit else { return false }
    clock.witness(HybridTime(generation: theirs, milliseconds: 0))
    return true
  }

  /// Whether a reading may count: its generation is within the limit, and its time before 2200.
  func counts(_ reading: HybridTime) -> Bool { reading.isPossible && countsGeneration(of: reading) }

  private func countsGeneration(of reading: HybridTime) -> Bool {
    reading.generation <= max(generation, generationLimit)
  }

  /// Whether the next readings may be published. Otherwise the hybrid clock has passed 2200, and
  /// every device would refuse them.
  var mayPublish: Bool {
    let ahead = UInt64(Limits.readingsOfFlush)
    return HybridTime(rawValue: clock.latest.rawValue &+ ahead).isPossible
  }

  enum OnBatch: Equatable {
    case apply
    /// End the session.
    case tooFarAhead(milliseconds: Int64)
    /// The generation does not count: end the session.
    case generationTooLate(UInt8)
  }

  /// Decides on a batch by its latest publishing clock. A joiner checks its inviter's clocks only
  /// against the limit of generations.
  func judge(_ published: HybridTime, isInviters: Bool) -> OnBatch {
    guard isInviters ? !counts(published) : wait(for: published) != nil else { return .apply }
    guard countsGeneration(of: published) else { return .generationTooLate(published.generation) }
    return .tooFarAhead(
      milliseconds: Int64(clamping: published.milliseconds) - Int64(clamping: now.wallMilliseconds))
  }

  /// The milliseconds until data with this latest publishing clock may be taken in; nil: now.
  func wait(for published: HybridTime) -> Int64? {
    guard published.isPossible else { return .max }
    guard published.generation >= generation else { return nil }
    guard counts(published) else { return .max }
    let isRight = isSynchronised && Self.isPossible(Int64(clamping: host.wallMilliseconds))
    if isWorthless, !isRight, followed == nil { return nil }
    let ahead =
      Int64(published.milliseconds) - Int64(clamping: now.wallMilliseconds)
      - Limits.publishedAheadMilliseconds
    return ahead > 0 ? ahead : nil
  }

  // MARK: The hybrid clock

  mutating func tick() -> HybridTime { clock.tick(at: now) }

  mutating func witness(_ reading: HybridTime) {
    clock.witness(reading)
    latestShared = max(latestShared, reading)
  }

  var aheadMilliseconds: Int64 {
    Int64(clock.latest.milliseconds) - Int64(clamping: now.wallMilliseconds)
  }

  /// Whether the hybrid clock heals once the time is certain.
  var isAhead: Bool { aheadMilliseconds > Limits.healingMilliseconds }

  /// When the clock is to be tried again, by the monotonic clock; nil: it is not ahead.
  mutating func planHealing() -> UInt64? {
    if !isAhead {
      healAt = nil
    } else if healAt ?? 0 <= now.monotonicMilliseconds {
      healAt = now.monotonicMilliseconds + Limits.haveIntervalMilliseconds
    }
    return healAt
  }

  /// Heals the hybrid clock if it is ahead of a time that is certain or `isAccepted` by the user;
  /// otherwise nil.
  ///
  /// `published` is the latest publishing clock of the kept change sets.
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
      // Set back only to the time: drafts before it keep their stamps.
      let time = HybridTime(generation: generation, milliseconds: now.wallMilliseconds)
      clock = HybridClock(latest: max(shared, time))
      return .setBack(milliseconds: ahead)
    }
    guard generation < generationLimit else {
      defer { lacksGeneration = true }
      return lacksGeneration ? nil : .noneLeft
    }
    lacksGeneration = false
    clock = HybridClock(
      latest: HybridTime(generation: generation + 1, milliseconds: now.wallMilliseconds))
    return .newGeneration(milliseconds: ahead)
  }
}

extension TimeKeeper.MemberTime {
  init(_ theirs: ClockReading, foundAt: UInt64, receivedAt: UInt64) {
    self.init(
      aheadOfMonotonic: Int64(clamping: theirs.reading.milliseconds) - Int64(clamping: foundAt),
      isSynchronised: theirs.isSynchronised, foundAt: foundAt, receivedAt: receivedAt)
  }
}

/// The members whose clocks, as last received, differed too much to exchange stores.
struct ClockDifferences: Sendable {
  private var known: [DeviceID: NodeStatus.ClockDifference] = [:]

  /// The differences, by device.
  var all: [NodeStatus.ClockDifference] { known.values.sorted { $0.device < $1.device } }

  /// Returns whether this is news: its outcome is another than before.
  mutating func note(_ difference: NodeStatus.ClockDifference) -> Bool {
    let old = known.updateValue(difference, forKey: difference.device)
    return old?.outcome != difference.outcome
  }

  /// Returns whether the clocks differed before.
  mutating func agree(with device: DeviceID) -> Bool {
    known.removeValue(forKey: device) != nil
  }
}
