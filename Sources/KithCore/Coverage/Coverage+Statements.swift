internal import KithCrypto

/// Statements: taking in, making, telling and asking.
extension Coverage {
  enum Heard: Equatable {
    /// A signature is invalid: nothing was taken in. End the session.
    case forged
    /// The later statements were taken in.
    case taken
    /// Also, another process of this device made one. Witness its start, unless that is nil because
    /// it is refuted; start anew, so that this process's statements are later or replace it.
    case otherProcess(HybridTime?)
  }

  /// Statements and digests for one peer.
  struct Telling {
    var session: SessionID
    var groups: [StatementGroup] = []
    var held: [HeldStatements] = []
  }

  /// Takes in statements that a peer passes on, and checks the signatures of those that count.
  /// `isRefuted`: too far ahead of a time that is certain. `received`: the highest sequence of a
  /// signed header received of a chain.
  mutating func hear(
    _ groups: [StatementGroup], in account: AccountID, at now: Instant,
    isTooFarAhead: (HybridTime) -> Bool,
    isRefuted: (HybridTime) -> Bool, isKnown: (StoreIdentifier) -> Bool,
    received: (StoreIdentifier, ChainID) -> UInt64,
    with repeater: InboundMessage.Repeater?
  ) -> Heard {
    func isReplaced(_ process: HeardProcess, by start: HybridTime) -> Bool {
      process.isReplaced(by: start, at: now, isRefuted: isRefuted)
    }
    var new: [Statement] = []
    for group in groups where isKnown(group.extent.store) {
      for said in group.said {
        for device in members[said.device] ?? [] {
          let start = said.age.started
          guard
            device == self.device
              ? start > started ?? .zero && (!isTooFarAhead(start) || isRefuted(start))
              : !isTooFarAhead(start)
                && table.takes(
                  said.age, of: device, group.extent.store, replacing: isReplaced)
          else { continue }
          new.append(Statement(said, by: device, extent: group.extent))
        }
      }
    }
    let checked = new
    let signed = values(checked.count, by: 16, with: repeater) { checked[$0].isSigned(in: account) }
    // If two members share a short name, the statement is the signer's.
    for (statement, isSigned) in zip(new, signed)
    where !isSigned && members[statement.device.shortName]?.count == 1 { return .forged }
    var heard = Heard.taken
    for (statement, isSigned) in zip(new, signed) where isSigned {
      let store = statement.store
      if statement.device == device {
        let start = statement.age.started
        heard = .otherProcess(isTooFarAhead(start) ? nil : start)
      } else if table.insert(
        statement, at: now.monotonicMilliseconds, replacing: isReplaced)
      {
        replaceShown(of: statement.device, by: statement.age.started, isReplaced)
        untold.insert(store)
        believe(statement, received: received)
      }
    }
    return heard
  }

  // MARK: Own statements

  /// The start of a process whose clock reads this.
  ///
  /// Copies of a directory may begin from one reading. So the counter's lower 11 bits are filled
  /// from the process's random id: with one start, no device could tell their statements apart.
  static func start(of process: ProcessID, at reading: HybridTime) -> HybridTime {
    let random = process.digest.bytes.prefix(2).reduce(0) { $0 << 8 | UInt64($1) } & 0x7ff
    return HybridTime(rawValue: reading.rawValue | random)
  }

  /// Starts this process's statements, or starts them anew.
  mutating func start(at reading: HybridTime, stores: some Sequence<StoreIdentifier>) {
    started = reading
    numbers = [:]
    for id in peers.keys { peers[id]?.told = [:] }
    sayFirst(stores)
  }

  /// Limits the rate: two running copies of a device would start anew in turns, without end.
  mutating func mayStartAnew(at now: UInt64) -> Bool {
    guard now >= nextStartAt else { return false }
    nextStartAt = now + Limits.haveIntervalMilliseconds
    return true
  }

  /// Plans the first statement and comparison of stores: a new process has vectors on its disk,
  /// which need not rise.
  mutating func sayFirst(_ stores: some Sequence<StoreIdentifier>) {
    let new = stores.filter { numbers[$0] == nil }
    unsaid.formUnion(new)
    unmatched.formUnion(new)
  }

  // MARK: When

  /// Whether something is to be told, and no time is set.
  func needsTime(at now: UInt64) -> Bool {
    let soon = now + Limits.statementWaitMilliseconds
    guard !peers.isEmpty, tellAt ?? .max > soon else { return false }
    return !unmatched.isEmpty || !untold.isEmpty
      || unsaid.contains { (saidAt[$0] ?? 0) + (saidAt[$0] == nil ? 0 : pace) <= soon }
  }

  /// The least milliseconds between statements about a store. More members make it longer.
  private var pace: UInt64 { UInt64(memberCount) * Limits.statementPaceMilliseconds }

  /// Sets a time to tell everything due by then. `jitter` is random, 0 to 255.
  mutating func setTime(at now: UInt64, jitter: UInt64) {
    let wait = Limits.statementWaitMilliseconds
    tellAt = min(tellAt ?? .max, now + wait / 2 + wait * jitter / 512)
  }

  /// When ``pass(at:isOpen:own:sign:received:)`` is due; nil: after another event.
  var dueAt: UInt64? { peers.isEmpty ? nil : [tellAt, askAt].compactMap(\.self).min() }

  /// Makes, tells and asks for the statements that are due.
  ///
  /// `own` is nil for an unknown store. `received`: the highest sequence of a signed header
  /// received of a chain. `isNews`: more may be known now.
  mutating func pass(
    at now: UInt64, isOpen: (SessionID) -> Bool, own: (StoreIdentifier) -> Own?,
    sign: (Extent, StatementAge) -> Statement,
    received: (StoreIdentifier, ChainID) -> UInt64
  ) -> (tellings: [Telling], isNews: Bool) {
    var tellings: [SessionID: Telling] = [:]
    var isNews = false
    if let tellAt, tellAt <= now {
      self.tellAt = nil
      isNews = !unmatched.isEmpty
      look(own, received)
      say(at: now, own, sign)
      tell(isOpen, into: &tellings)
    }
    if let askAt, askAt <= now {
      self.askAt = nil
      ask(at: now, isOpen, into: &tellings)
    }
    return (tellings.values.sorted { $0.session < $1.session }, isNews)
  }

  /// Compares statements with the own vectors, and makes own ones that say what is covered now.
  mutating func sayAll(
    _ stores: [StoreIdentifier], at now: UInt64, own: (StoreIdentifier) -> Own?,
    sign: (Extent, StatementAge) -> Statement, received: (StoreIdentifier, ChainID) -> UInt64
  ) {
    look(own, received)
    for store in stores where numbers[store] == nil || unsaid.contains(store) {
      say(store, at: now, own, sign)
    }
  }

  /// Compares held statements with the own vectors that changed.
  private mutating func look(
    _ own: (StoreIdentifier) -> Own?, _ received: (StoreIdentifier, ChainID) -> UInt64
  ) {
    for store in unmatched.sorted() {
      guard let vector = own(store)?.vector else { continue }
      self.own[store] = (vector, Extent.digest(of: vector))
      for statement in table.statements(of: store) where statement.device != device {
        believe(statement, received: received)
      }
    }
    unmatched = []
  }

  private mutating func say(
    at now: UInt64, _ own: (StoreIdentifier) -> Own?, _ sign: (Extent, StatementAge) -> Statement
  ) {
    for store in unsaid.sorted() {
      if let said = saidAt[store], now < said + pace {
        tellAt = min(tellAt ?? .max, said + pace)
        continue
      }
      say(store, at: now, own, sign)
    }
  }

  private mutating func say(
    _ store: StoreIdentifier, at now: UInt64, _ own: (StoreIdentifier) -> Own?,
    _ sign: (Extent, StatementAge) -> Statement
  ) {
    unsaid.remove(store)
    guard let started, let covered = own(store) else { return }
    saidAt[store] = now
    let number = (numbers[store] ?? 0) + 1
    numbers[store] = number
    let known = unmatched.contains(store) ? nil : self.own[store]?.digest
    let digest = known ?? Extent.digest(of: covered.vector)
    let extent = Extent(
      store, digest: digest, entries: covered.latest, isBelow: covered.isBelow)
    if table.insert(sign(extent, StatementAge(started: started, number: number)), at: now) {
      untold.insert(store)
    }
  }

  // MARK: Comparing and asking

  /// The statements' parts of a full `Have`: digests of those held and, the first time on a
  /// session, this device's own. Empty if the peer is not a member.
  ///
  /// The peer can pass the own ones on. Otherwise, if a copy of a device ran for a moment, the peer
  /// would know a start of which the device never hears.
  mutating func introduce(
    _ stores: [StoreIdentifier], on session: SessionID, at now: UInt64,
    own: (StoreIdentifier) -> Own?, sign: (Extent, StatementAge) -> Statement
  ) -> (said: [StatementGroup], held: [HeldStatements]) {
    guard let peer = peers[session], peer.isMember else { return ([], []) }
    let first = stores.filter { peer.told[$0] == nil }
    for store in first where numbers[store] == nil { say(store, at: now, own, sign) }
    let said = StatementGroup.groups(of: first.compactMap { table[$0, device] })
    let held = stores.map { HeldStatements($0, digest: table.digest(of: $0)) }
    for digest in held { tell(digest, to: session) }
    return (said, held)
  }

  /// Notes what a peer is told.
  private mutating func tell(_ ours: HeldStatements, to session: SessionID) {
    peers[session]?.told[ours.store] = (ours.digest, at: table.changes)
    if peers[session]?.held[ours.store] == ours.digest {
      peers[session]?.agreed[ours.store] = table.changes
    }
  }

  private mutating func tell(
    _ isOpen: (SessionID) -> Bool, into tellings: inout [SessionID: Telling]
  ) {
    var later: Set<StoreIdentifier> = []
    for store in untold.sorted() {
      let ours = HeldStatements(store, digest: table.digest(of: store))
      for (id, peer) in peers where peer.isMember && peer.told[store]?.digest != ours.digest {
        guard isOpen(id) else {
          later.insert(store)
          continue
        }
        tell(ours, to: id)
        tellings[id, default: Telling(session: id)].held.append(ours)
      }
    }
    untold = later
  }

  /// Notes which statements a peer holds, and answers if it asks. `isRenewed`: with a full `Have`,
  /// so the peer may be asked again.
  mutating func compare(
    _ theirs: HeldStatements, isRenewed: Bool, on session: SessionID, at now: UInt64
  ) -> Telling? {
    guard peers[session]?.isMember == true else { return nil }
    peers[session]?.held[theirs.store] = theirs.digest
    if let told = peers[session]?.told[theirs.store], told.digest == theirs.digest {
      peers[session]?.agreed[theirs.store] = told.at
    }
    if isRenewed { peers[session]?.asked[theirs.store] = nil }
    if asks[theirs.store]?.session == session, theirs.asksBut == nil {
      asks[theirs.store] = nil
      restUntil[theirs.store] = now + Limits.statementRestMilliseconds
    }
    let ours = HeldStatements(theirs.store, digest: table.digest(of: theirs.store))
    if ours.digest != theirs.digest { askAt = min(askAt ?? .max, now) }
    guard let names = theirs.asksBut else { return nil }
    let lacking = table.statements(
      of: theirs.store, after: peers[session]?.agreed[theirs.store] ?? 0
    ).filter { !names.contains($0.name(in: theirs.digest)) }
    tell(ours, to: session)
    return Telling(session: session, groups: StatementGroup.groups(of: lacking), held: [ours])
  }

  /// Asks one peer at a time about a store: of those with another digest, the one asked longest
  /// ago.
  private mutating func ask(
    at now: UInt64, _ isOpen: (SessionID) -> Bool, into tellings: inout [SessionID: Telling]
  ) {
    for store in Set(peers.values.flatMap(\.held.keys)).sorted() {
      let digest = table.digest(of: store)
      let candidates = peers.filter { id, peer in
        guard peer.isMember, let held = peer.held[store] else { return false }
        return held != digest && held != peer.asked[store]?.digest && isOpen(id)
      }
      guard
        let (id, peer) = candidates.min(by: {
          ($0.value.asked[store]?.at ?? 0, $0.key) < ($1.value.asked[store]?.at ?? 0, $1.key)
        }), let held = peer.held[store]
      else { continue }
      let waitsUntil = max(
        asks[store].map { $0.at + Limits.statementAnswerMilliseconds } ?? 0, restUntil[store] ?? 0)
      guard waitsUntil <= now else {
        askAt = min(askAt ?? .max, waitsUntil)
        continue
      }
      asks[store] = (id, now)
      peers[id]?.asked[store] = (held, now)
      tell(HeldStatements(store, digest: digest), to: id)
      let new = table.statements(of: store, after: peers[id]?.agreed[store] ?? 0)
      var telling = tellings[id] ?? Telling(session: id)
      // The question tells the digest too.
      telling.held.removeAll { $0.store == store }
      telling.held.append(
        HeldStatements(
          store, digest: digest, asksBut: Set(new.map { $0.name(in: digest) })))
      tellings[id] = telling
      // If this peer does not answer, another is asked.
      askAt = min(askAt ?? .max, now + Limits.statementAnswerMilliseconds)
    }
  }
}
