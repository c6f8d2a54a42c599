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
    hear(
      told, foundAt: now.monotonicMilliseconds, from: device, on: id, isHandshake: !exchanges(id))
  }

  mutating func hearHello(from device: DeviceID, on id: SessionID) -> Bool {
    guard let link = links[id] else { return false }
    return hear(
      link.peer.hello.time, foundAt: link.openedAt, from: device, on: id, isHandshake: true)
  }

  private mutating func hear(
    _ told: ToldTime, foundAt: UInt64, from device: DeviceID, on id: SessionID, isHandshake: Bool
  ) -> Bool {
    let claim = TimeKeeper.Claim(told, foundAt: foundAt, heardAt: now.monotonicMilliseconds)
    timeKeeper.note(claim, of: device, isHandshake: isHandshake)
    healIfAhead()
    hear(generation: told.reading.generation)
    healIfAhead()
    links[id]?.clockOffsetMilliseconds = timeKeeper.offset(of: claim)
    let agrees = timeKeeper.agrees(with: claim, isHandshake: isHandshake)
    if agrees, clockDifferences.agree(with: device) {
      report(.clocksAgree(peer: device))
    }
    return agrees
  }

  /// Continues in a later generation that a member tells, and tells it on.
  mutating func hear(generation: UInt8) {
    guard timeKeeper.hear(generation: generation) else { return }
    effects.append(.persist([.put(.clock, clock.latest.row)]))
    tellTime()
  }

  /// Notes that the clocks differ too much to exchange stores. Reports each change of the outcome.
  mutating func reportClockDifference(with device: DeviceID, _ told: ToldTime, on id: SessionID) {
    guard let offset = links[id]?.clockOffsetMilliseconds else { return }
    let outcome = timeKeeper.outcome(isTheirsSynchronised: told.isSynchronised)
    let difference = NodeStatus.ClockDifference(
      device: device, milliseconds: offset, outcome: outcome)
    guard clockDifferences.note(difference) else { return }
    report(.clocksDiffer(peer: device, milliseconds: offset, outcome: outcome))
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
      report(.clockSetBack(milliseconds: milliseconds))
    case .newGeneration(let milliseconds):
      effects.append(.persist([.put(.clock, clock.latest.row)]))
      report(.newGeneration(timeKeeper.generation, milliseconds: milliseconds))
      tellTime()
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
