internal import KithCrypto

/// Carries out the decisions of ``Coverage``.
extension Replica {
  // MARK: Sessions

  /// Each process makes a statement of each store, because it may cover less than the process
  /// before it.
  mutating func beginCoverage(on id: SessionID, with device: DeviceID, isMember: Bool) {
    coverage.begin(id, with: device, isMember: isMember)
    if coverage.started == nil {
      startCoverage()
    } else {
      coverage.sayFirst(stores.keys)
    }
    planCoverage()
  }

  private mutating func startCoverage() {
    let start = Coverage.start(of: process, at: timeKeeper.tickForAll())
    timeKeeper.witness(start)
    coverage.start(at: start, stores: stores.keys)
  }

  /// The statements of a full `Have`.
  mutating func introduce(
    _ identifiers: [StoreIdentifier], on id: SessionID
  ) -> (said: [StatementGroup], held: [HeldStatements]) {
    let (stores, keys, account) = (stores, keys, account)
    return coverage.introduce(
      identifiers, on: id, at: now.monotonicMilliseconds,
      own: { stores[$0].map(Coverage.Own.init) },
      sign: { Statement($0, age: $1, account: account, keys: keys) })
  }

  // MARK: Own coverage

  /// Makes a statement due, and compares the held ones again.
  mutating func vectorChanged(in identifier: StoreIdentifier) {
    coverage.rise(identifier, at: now.monotonicMilliseconds)
    planCoverage()
  }

  /// Tells peers the vector entries that changed.
  mutating func tellProgress() {
    var told: [StatementGroup] = []
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], !store.untold.isEmpty || store.isHorizonUntold else {
        continue
      }
      stores[identifier]?.untold = []
      stores[identifier]?.isHorizonUntold = false
      vectorChanged(in: identifier)
      let risen = store.log.vector.filter { store.untold.contains($0.key) }
      told.append(
        StatementGroup(Extent(identifier, entries: risen, isBelow: store.horizon.isBelow)))
    }
    guard !told.isEmpty else { return }
    let messages = Have.messages(telling: told, by: coverage.started, time: toldTime)
    for id in links.keys.sorted() where exchanges(id) {
      for message in messages { effects.append(.send(id, message)) }
    }
  }

  mutating func planCoverage() {
    guard coverage.needsTime(at: now.monotonicMilliseconds) else { return }
    let jitter = UInt64(entropy.draw(Digest128.self).bytes[0])
    coverage.setTime(at: now.monotonicMilliseconds, jitter: jitter)
  }

  /// Makes, tells and asks for due statements.
  mutating func passOn() {
    guard let due = coverage.dueAt, due <= now.monotonicMilliseconds else { return }
    let (stores, links, keys, account) = (stores, links, keys, account)
    let (tellings, isNews) = coverage.pass(
      at: now.monotonicMilliseconds,
      isOpen: { links[$0]?.isExchanging == true && links[$0]?.takesMore == true },
      own: { stores[$0].map(Coverage.Own.init) },
      sign: { Statement($0, age: $1, account: account, keys: keys) },
      received: { stores[$0]?.log.chains[$1]?.received ?? 0 })
    for telling in tellings { send(telling) }
    if isNews { effects.append(.progress) }
    planCoverage()
  }

  private mutating func send(_ telling: Coverage.Telling) {
    let messages = Have.messages(
      telling: telling.groups, holding: telling.held, by: coverage.started, time: toldTime)
    for message in messages { effects.append(.send(telling.session, message)) }
  }

  // MARK: Hearing

  /// Takes in a peer's coverage and the statements that it relays. Returns false if the session
  /// ends.
  mutating func hearCoverage(_ have: Have, on id: SessionID) -> Bool {
    hearOwn(have, on: id)
    guard hear(have.statements) else {
      end(id, .protocolViolation)
      return false
    }
    for held in have.held where stores[held.store] != nil {
      let answer = coverage.compare(
        held, isRenewed: have.number > 0, on: id, at: now.monotonicMilliseconds)
      if let answer, links[id]?.takesMore == true { send(answer) }
    }
    planCoverage()
    passOn()
    return true
  }

  /// Takes in statements that another device passes on. Returns false if one is forged.
  mutating func hear(_ statements: [StatementGroup]) -> Bool {
    let stores = stores
    let timeKeeper = timeKeeper
    switch coverage.hear(
      statements, in: account, at: now, isTooFarAhead: { timeKeeper.wait(for: $0) != nil },
      isRefuted: timeKeeper.refutes, isKnown: { stores[$0] != nil },
      received: { stores[$0]?.log.chains[$1]?.received ?? 0 }, with: repeater)
    {
    case .forged: return false
    case .taken: break
    case .otherProcess(let start):
      if let start { self.timeKeeper.witness(start) }
      if coverage.mayStartAnew(at: now.monotonicMilliseconds) {
        startCoverage()
        sendHaves()
      }
    }
    return true
  }

  /// Makes this device's statements of these stores say what it covers now, and compares those of
  /// others with that.
  mutating func sayAll(_ identifiers: [StoreIdentifier]) {
    if coverage.started == nil { startCoverage() }
    let (stores, keys, account) = (stores, keys, account)
    coverage.sayAll(
      identifiers, at: now.monotonicMilliseconds, own: { stores[$0].map(Coverage.Own.init) },
      sign: { Statement($0, age: $1, account: account, keys: keys) },
      received: { stores[$0]?.log.chains[$1]?.received ?? 0 })
  }

  /// Takes in the risen entries of a peer's vector.
  mutating func hearOwn(_ have: Have, on id: SessionID) {
    for group in have.statements
    where group.said.isEmpty && links[id]?[group.extent.store].isMismatched == false {
      let (extent, entries) = (
        group.extent, group.extent.entries.filter { !roster.isRevoked($0.key.device) }
      )
      note(
        entries, of: extent.store, isWhole: false, isBelow: extent.isBelow, on: id,
        started: have.started)
      compareStates(of: extent.store, on: id)
    }
  }

  mutating func note(
    _ vector: [ChainID: UInt64], of identifier: StoreIdentifier, isWhole: Bool, isBelow: Bool,
    on id: SessionID, started: HybridTime
  ) {
    guard let chains = stores[identifier]?.log.chains else { return }
    links[id]?.note(vector, of: identifier, isWhole: isWhole) { chains[$0] != nil }
    links[id]?[identifier].isBelow = isBelow
    coverage.hear(
      links[id]?[identifier].vector ?? [:], of: identifier, isWhole: isWhole, isBelow: isBelow,
      on: id, started: started, at: now.monotonicMilliseconds, isKnown: { chains[$0] != nil })
  }

  /// Counts what peers told of chains that are known only now.
  mutating func learnChains(of identifier: StoreIdentifier) {
    guard let chains = stores[identifier]?.log.chains else { return }
    for id in links.keys where exchanges(id) {
      coverage.hear(
        links[id]?[identifier].vector ?? [:], of: identifier, isWhole: false,
        isBelow: links[id]?[identifier].isBelow == true, on: id, started: nil,
        at: now.monotonicMilliseconds, isKnown: { chains[$0] != nil })
    }
  }

  /// Forgets devices that had not seen a removal, once they have everything or left.
  mutating func noteSeen() {
    var mutations: [Mutation] = []
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], !store.horizon.unseen.isEmpty else { continue }
      let vector = store.log.vector
      let left = store.horizon.unseen.filter {
        roster.isMember($0) && !coverage.covers(vector, of: identifier, $0)
      }
      mutations += stores[identifier]?.setUnseen(left) ?? []
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  // MARK: Left behind

  mutating func lookForLeftBehind() {
    let stores = stores
    let behind = coverage.lookForLeftBehind(
      at: now.monotonicMilliseconds, connected: Set(links.values.compactMap(\.device)),
      vectors: { stores.mapValues(\.log.vector) })
    if let behind { effects.append(.leftBehind(behind)) }
  }
}
