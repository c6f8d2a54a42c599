internal import KithCrypto

/// What a device said of the time when it was last met.
struct TimeClaim {
  /// Its time less the reading of our monotonic clock, in milliseconds: no step of our own clock
  /// alters it.
  var aheadOfMonotonic: Int64
  /// Whether its kernel called its clock synchronised.
  var isSynchronised: Bool
}

/// Whose time counts (`Docs/Protocol.md`, "Clocks"). `Docs/Decisions/clocks.md` says why.
extension Replica {
  enum ClockVerdict {
    case agrees
    case theirsAdopted
    case differs
  }

  /// Whether clocks are near enough to exchange stores; remembers it where they are not.
  mutating func judgeClock(of session: Session, _ device: DeviceID) -> ClockVerdict {
    let theirs = Int64(clamping: session.peer.hello.clock.milliseconds)
    timeClaims[device] = TimeClaim(
      aheadOfMonotonic: Int64(clamping: now.wallMilliseconds) + session.clockOffsetMilliseconds
        - Int64(clamping: now.monotonicMilliseconds),
      isSynchronised: session.peer.hello.isSynchronised)
    let offset = session.clockOffsetMilliseconds
    guard !Self.agree(offset, 0) else {
      clockDifferences[device] = nil
      return .agrees
    }
    let outcome: ClockDifference.Outcome
    switch (isClockSynchronised, session.peer.hello.isSynchronised) {
    case (false, true): outcome = objection(toAdopting: theirs, from: device) ?? .adopted
    case (true, false): outcome = .theyAdopt
    case (true, true): outcome = .bothSynchronised
    case (false, false): outcome = .neitherSynchronised
    }
    clockDifferences[device] = ClockDifference(
      device: device, milliseconds: offset, outcome: outcome)
    effects.append(
      .report(.clocksDiffer(peer: device, milliseconds: offset, outcome: outcome)))
    return switch outcome {
    case .adopted: .theirsAdopted
    case .theyAdopt: .agrees
    default: .differs
    }
  }

  private static func agree(_ left: Int64, _ right: Int64) -> Bool {
    (left - right).magnitude <= Limits.clockDifferenceMilliseconds.magnitude
  }

  private func time(of claim: TimeClaim) -> Int64 {
    claim.aheadOfMonotonic + Int64(clamping: now.monotonicMilliseconds)
  }

  /// Why the time of a synchronised device is not taken over; nil where it may be.
  private func objection(
    toAdopting theirs: Int64, from device: DeviceID
  ) -> ClockDifference.Outcome? {
    let distance = (theirs - Int64(clamping: host.wallMilliseconds)).magnitude
    if distance > Limits.adoptedMilliseconds, !isHostClockImpossible { return .tooFar }
    let isContradicted = timeClaims.contains { other, claim in
      other != device && claim.isSynchronised && !Self.agree(time(of: claim), theirs)
        && (time(of: claim) - Int64(clamping: host.wallMilliseconds)).magnitude <= distance
    }
    if isContradicted { return .contradicted }
    if sources(of: theirs) < 2, isBehindData(theirs) { return .behindData }
    return usedIncarnations.count >= Limits.incarnationsForAdopting ? .tooManyIncarnations : nil
  }

  /// Whether the host's clock cannot be right: it reads earlier than this software's release, or than
  /// what this device has read before. Readings by another's time do not count: a device that lies
  /// would lead this one a day ahead first, and then anywhere.
  private var isHostClockImpossible: Bool {
    host.wallMilliseconds < Software.releasedMilliseconds
      || Int64(clamping: ownReading.milliseconds)
        > Int64(clamping: host.wallMilliseconds) + Limits.clockDifferenceMilliseconds
  }

  /// The hybrid clock's latest reading before another's time was taken over.
  private var ownReading: HybridTime { readingBeforeAdopting ?? clock.latest }

  /// How many clocks say that it is this time: the host's own, and those of synchronised devices.
  private func sources(of time: Int64) -> Int {
    timeClaims.values.count { $0.isSynchronised && Self.agree(self.time(of: $0), time) }
      + (Self.agree(Int64(clamping: host.wallMilliseconds), time) ? 1 : 0)
  }

  /// Whether others published later than this time, as far as we hold it. Where a synchronised device
  /// says that it is this time, who was heard to have a clock further from the host's does not count.
  private func isBehindData(_ time: Int64) -> Bool {
    let limit = HybridTime(
      milliseconds: UInt64(clamping: time + Limits.clockDifferenceMilliseconds))
    let wall = Int64(clamping: host.wallMilliseconds)
    let isConfirmed = timeClaims.values.contains {
      $0.isSynchronised && Self.agree(self.time(of: $0), time)
    }
    return stores.values.contains { store in
      store.log.changeSets.values.contains { changeSet in
        let author = changeSet.chain.device
        guard author != keys.id, changeSet.clock > limit, !store.log.isVoid(changeSet)
        else { return false }
        guard isConfirmed, let claim = timeClaims[author] else { return true }
        return (self.time(of: claim) - wall).magnitude <= (time - wall).magnitude
      }
    }
  }

  /// Whether the time is certain enough to drop what is ahead of it: some kernel calls it
  /// synchronised, and a second clock says the same where others' data is ahead of it, too.
  var isTimeCertain: Bool {
    let time = Int64(clamping: now.wallMilliseconds)
    guard
      isClockSynchronised
        || timeClaims.values.contains(where: {
          $0.isSynchronised && Self.agree(self.time(of: $0), time)
        })
    else { return false }
    return sources(of: time) > 1 || !isBehindData(time)
  }

  /// Takes over the time of a device whose clock is synchronised, when ours is not. Who is met at
  /// another time is to be judged anew.
  mutating func adoptTime(of device: DeviceID, on id: SessionID, aheadBy offset: Int64) {
    let wall = Int64(clamping: now.wallMilliseconds) + offset
    now.wallMilliseconds = UInt64(max(0, wall))
    readingBeforeAdopting = ownReading
    adoptedTime = now
    adoptedFrom = device
    // Differences from the time that we had say nothing any more.
    for other in sessions.keys { sessions[other]?.clockOffsetMilliseconds -= offset }
    for other in sessions.keys.sorted() where other != id {
      guard let session = sessions[other], session.isExchanging,
        !Self.agree(session.clockOffsetMilliseconds, 0)
      else { continue }
      effects.append(.close(other, .clockMended))
      disconnect(other)
    }
  }

  /// Once the host's clock is synchronised itself, it counts again, and not what was adopted: the
  /// sessions are dialled anew, so that both sides judge clocks by it. So are those on which nothing
  /// is exchanged, for the clocks differed.
  mutating func setSynchronised(_ isSynchronised: Bool) {
    let isNews = isClockSynchronised != isSynchronised
    isClockSynchronised = isSynchronised
    if isNews {
      for id in sessions.keys.sorted() where sessions[id]?.clocksDiffered == true {
        effects.append(.close(id, .clocksDiffered))
        disconnect(id)
      }
    }
    if isSynchronised, adoptedTime != nil {
      adoptedTime = nil
      adoptedFrom = nil
      readingBeforeAdopting = nil
      now = host
      for id in sessions.keys.sorted() {
        effects.append(.close(id, .clockMended))
        disconnect(id)
      }
    }
    guard !mendIfAhead(), isNews, isSynchronised,
      dataAheadMilliseconds > Limits.mendingMilliseconds
    else { return }
    // A second clock is needed, and only a handshake tells what a peer's says now.
    for id in sessions.keys.sorted() {
      effects.append(.close(id, .clockMended))
      disconnect(id)
    }
  }

  /// What this device's status says of the time.
  var clockStatus: ReplicaStatus.Clock {
    let ahead = dataAheadMilliseconds
    return ReplicaStatus.Clock(
      isSynchronised: isClockSynchronised, adoptedFrom: adoptedFrom,
      adoptedMilliseconds: adoptedFrom == nil
        ? 0 : Int64(clamping: now.wallMilliseconds) - Int64(clamping: host.wallMilliseconds),
      dataAheadMilliseconds: ahead > Limits.clockDifferenceMilliseconds ? ahead : 0,
      differences: clockDifferences.values.sorted { $0.device < $1.device })
  }
}
