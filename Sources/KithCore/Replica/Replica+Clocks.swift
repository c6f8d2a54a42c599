internal import KithCrypto

/// ``TimeKeeper`` has the rules (`Docs/Protocol.md`, "Clocks").
extension Replica {
  var clock: HybridClock { timeKeeper.clock }

  /// The time that this device uses.
  var now: Instant { timeKeeper.now }

  mutating func tick() -> HybridTime { timeKeeper.tick() }

  // MARK: Telling the time

  var toldTime: ToldTime { timeKeeper.told(at: timeKeeper.host) }

  mutating func tellTime(on id: SessionID) {
    for message in Have(telling: toldTime).messages() {
      effects.append(.send(id, message))
    }
  }

  /// Tells all members the time, before anything else is sent to them.
  mutating func tellTime() {
    for id in links.keys.sorted() where links[id]?.isToldTime == true { tellTime(on: id) }
  }

  // MARK: Hearing the time

  /// Takes in a member's time. Returns whether stores may be exchanged with it.
  mutating func hear(_ told: ToldTime, from device: DeviceID, on id: SessionID) -> Bool {
    let claim = TimeKeeper.Claim(
      aheadOfMonotonic: Int64(clamping: told.reading.milliseconds)
        - Int64(clamping: now.monotonicMilliseconds),
      isSynchronised: told.isSynchronised, foundAt: now.monotonicMilliseconds,
      heardAt: now.monotonicMilliseconds)
    return hear(
      claim, generation: told.reading.generation, from: device, on: id,
      isHandshake: !exchanges(id))
  }

  mutating func hearHello(from device: DeviceID, on id: SessionID) -> Bool {
    guard let link = links[id] else { return false }
    let hello = link.peer.hello
    let claim = TimeKeeper.Claim(
      aheadOfMonotonic: Int64(clamping: hello.clock.milliseconds)
        - Int64(clamping: link.openedAt),
      isSynchronised: hello.isSynchronised, foundAt: link.openedAt,
      heardAt: now.monotonicMilliseconds)
    return hear(
      claim, generation: hello.clock.generation, from: device, on: id, isHandshake: true)
  }

  private mutating func hear(
    _ claim: TimeKeeper.Claim, generation: UInt8, from device: DeviceID, on id: SessionID,
    isHandshake: Bool
  ) -> Bool {
    timeKeeper.note(claim, of: device, isHandshake: isHandshake)
    healIfAhead()
    hear(generation: generation)
    healIfAhead()
    links[id]?.clockOffsetMilliseconds = timeKeeper.offset(of: claim)
    let agrees = timeKeeper.agrees(with: claim, isHandshake: isHandshake)
    if agrees, clockDifferences.agree(with: device) {
      effects.append(.report(.clocksAgree(peer: device)))
    }
    return agrees
  }

  /// Continues in a later generation that a member tells, and tells it on.
  mutating func hear(generation: UInt8) {
    guard timeKeeper.hear(generation: generation) else { return }
    effects.append(.persist([.setClock(clock.latest)]))
    tellTime()
    let moment = now.monotonicMilliseconds
    for id in links.keys { links[id]?.retry(at: moment) }
  }

  /// Notes that the clocks differ too much to exchange stores. Reports each change of the outcome.
  mutating func reportClockDifference(with device: DeviceID, _ told: ToldTime, on id: SessionID) {
    guard let offset = links[id]?.clockOffsetMilliseconds else { return }
    let outcome = timeKeeper.outcome(isTheirsSynchronised: told.isSynchronised)
    let difference = NodeStatus.ClockDifference(
      device: device, milliseconds: offset, outcome: outcome)
    guard clockDifferences.note(difference) else { return }
    effects.append(
      .report(.clocksDiffer(peer: device, milliseconds: offset, outcome: outcome)))
  }

  /// Takes in a `Have`'s time, which may begin or end the exchange of stores.
  mutating func judge(_ told: ToldTime, from device: DeviceID, on id: SessionID) {
    let agrees = hear(told, from: device, on: id)
    switch links[id]?.judge(clocksAgree: agrees) {
    case .begin: exchange(on: id)
    case .differ: reportClockDifference(with: device, told, on: id)
    case .end:
      reportClockDifference(with: device, told, on: id)
      end(id, .clocksDiffer)
    case .goOn, nil: break
    }
  }

  /// Takes in the kernel's view, and tells all members if it changed.
  mutating func setClockStatus(isSynchronised: Bool, hasHardware: Bool) {
    let isNews = timeKeeper.isSynchronised != isSynchronised
    timeKeeper.set(isSynchronised: isSynchronised, hasHardware: hasHardware)
    healIfAhead()
    if isNews { tellTime() }
  }

  // MARK: Healing

  /// Heals the clock if the time is certain, or a person accepted it.
  mutating func healIfAhead(isAccepted: Bool = false) {
    guard timeKeeper.isAhead, incarnations.current != nil else { return }
    let stores = stores.values
    // Evaluated only if the clock may heal.
    let latestPublished = {
      stores.lazy.compactMap { $0.log.changeSets.values.lazy.map(\.clock).max() }.max() ?? .zero
    }
    switch timeKeeper.heal(published: latestPublished, isAccepted: isAccepted) {
    case nil: break
    case .setBack(let milliseconds):
      restampDrafts()
      effects.append(.report(.clockSetBack(milliseconds: milliseconds)))
    case .newGeneration(let milliseconds):
      counters.generations += 1
      effects.append(.persist([.setClock(clock.latest)]))
      effects.append(
        .report(
          .newGeneration(timeKeeper.generation, milliseconds: milliseconds)))
      tellTime()
    case .noneLeft: effects.append(.report(.noGenerationLeft(timeKeeper.generation)))
    }
  }

  /// Stamps drafts that are later than the time again, in order.
  private mutating func restampDrafts() {
    let first = HybridTime(
      generation: timeKeeper.generation, milliseconds: now.wallMilliseconds)
    let author = keys.id
    var outcome = StoreOutcome()
    for identifier in stores.keys.sorted() {
      outcome +=
        stores[identifier]?.restampDrafts(from: first, author: author, clock: &timeKeeper)
        ?? StoreOutcome()
    }
    effects.append(.persist([.setClock(clock.latest)]))
    carryOut(outcome, in: stores.keys.sorted())
  }

  var clockStatus: NodeStatus.Clock {
    let ahead = timeKeeper.aheadMilliseconds
    var clock = NodeStatus.Clock()
    clock.milliseconds = Int64(clamping: now.wallMilliseconds)
    clock.aheadOfHostMilliseconds =
      clock.milliseconds - Int64(clamping: timeKeeper.host.wallMilliseconds)
    clock.isSynchronised = timeKeeper.isSynchronised
    clock.isCertain = timeKeeper.isCertain
    clock.isWorthless = timeKeeper.isWorthless
    clock.follows = timeKeeper.followed
    clock.generation = timeKeeper.generation
    clock.generationLimit = timeKeeper.generationLimit
    clock.stampsAheadMilliseconds = ahead > Limits.clockDifferenceMilliseconds ? ahead : 0
    clock.differences = clockDifferences.all
    clock.peers = timeKeeper.claims.keys.sorted().compactMap { device in
      guard let time = timeKeeper.time(of: device), let claim = timeKeeper.claims[device]
      else { return nil }
      return NodeStatus.PeerClock(
        device: device, milliseconds: time - clock.milliseconds,
        isSynchronised: claim.isSynchronised)
    }
    return clock
  }
}
