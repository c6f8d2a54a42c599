internal import KithCrypto

/// ``TimeKeeper`` has the rules (`Docs/Protocol.md`, "Clocks").
extension Replica {
  var clock: HybridClock { timeKeeper.clock }

  /// The time that this device uses.
  var now: Instant { timeKeeper.now }

  mutating func tick() -> HybridTime { timeKeeper.tick() }

  // MARK: Sending the clock

  var clockReading: ClockReading { timeKeeper.clockReading(at: timeKeeper.host) }

  mutating func sendClock(on id: SessionID) {
    for message in Have(clock: clockReading).messages() {
      effects.append(.send(id, message))
    }
  }

  /// Sends this device's clock to all members, before anything else is sent to them.
  mutating func sendClock() {
    for id in links.keys.sorted() where links[id]?.getsClock == true { sendClock(on: id) }
  }

  // MARK: Members' clocks

  /// Notes a member's clock. Returns whether stores may be exchanged with the member.
  mutating func noteClock(_ theirs: ClockReading, from device: DeviceID, on id: SessionID) -> Bool {
    noteClock(
      theirs, foundAt: now.monotonicMilliseconds, from: device, on: id, isHandshake: !exchanges(id))
  }

  mutating func noteHelloClock(from device: DeviceID, on id: SessionID) -> Bool {
    guard let link = links[id] else { return false }
    return noteClock(
      link.peer.hello.time, foundAt: link.openedAt, from: device, on: id, isHandshake: true)
  }

  private mutating func noteClock(
    _ theirs: ClockReading, foundAt: UInt64, from device: DeviceID, on id: SessionID,
    isHandshake: Bool
  ) -> Bool {
    let memberTime = TimeKeeper.MemberTime(
      theirs, foundAt: foundAt, receivedAt: now.monotonicMilliseconds)
    timeKeeper.note(memberTime, of: device, isHandshake: isHandshake)
    healIfAhead()
    follow(generation: theirs.reading.generation)
    healIfAhead()
    links[id]?.clockOffsetMilliseconds = timeKeeper.offset(of: memberTime)
    let agrees = timeKeeper.agrees(with: memberTime, isHandshake: isHandshake)
    if agrees, clockDifferences.agree(with: device) {
      report(.clocksAgree(peer: device))
    }
    return agrees
  }

  /// Continues in a member's later generation, and sends it to all members.
  mutating func follow(generation: UInt8) {
    guard timeKeeper.follow(generation: generation) else { return }
    effects.append(.persist([.put(.clock, clock.latest.row)]))
    sendClock()
  }

  /// Notes that the clocks differ too much to exchange stores. Reports each change of the outcome.
  mutating func reportClockDifference(
    with device: DeviceID, _ theirs: ClockReading, on id: SessionID
  ) {
    guard let offset = links[id]?.clockOffsetMilliseconds else { return }
    let outcome = timeKeeper.outcome(isTheirsSynchronised: theirs.isSynchronised)
    let difference = NodeStatus.ClockDifference(
      device: device, milliseconds: offset, outcome: outcome)
    guard clockDifferences.note(difference) else { return }
    report(.clocksDiffer(peer: device, milliseconds: offset, outcome: outcome))
  }

  /// Notes the clock in a `Have`, which may begin or end the exchange of stores.
  mutating func judgeClock(_ theirs: ClockReading, from device: DeviceID, on id: SessionID) {
    let agrees = noteClock(theirs, from: device, on: id)
    switch links[id]?.judge(clocksAgree: agrees) {
    case .begin: exchange(on: id)
    case .differ: reportClockDifference(with: device, theirs, on: id)
    case .end:
      reportClockDifference(with: device, theirs, on: id)
      end(id, .clocksDiffer)
    case .goOn, nil: break
    }
  }

  /// Notes whether the kernel calls the clock synchronised; if that changed, sends the clock to all
  /// members.
  mutating func setClockStatus(isSynchronised: Bool, hasHardware: Bool) {
    let isNews = timeKeeper.isSynchronised != isSynchronised
    timeKeeper.set(isSynchronised: isSynchronised, hasHardware: hasHardware)
    healIfAhead()
    if isNews { sendClock() }
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
      report(.clockSetBack(milliseconds: milliseconds))
    case .newGeneration(let milliseconds):
      effects.append(.persist([.put(.clock, clock.latest.row)]))
      report(.newGeneration(timeKeeper.generation, milliseconds: milliseconds))
      sendClock()
    case .noneLeft: report(.noGenerationLeft(timeKeeper.generation))
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
    effects.append(.persist([.put(.clock, clock.latest.row)]))
    carryOut(outcome, in: stores.keys.sorted())
  }
}
