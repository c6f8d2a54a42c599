internal import KithCrypto

/// What this replica knows and does of statements: who has what, passed on from device to device, so
/// that it is known of devices that are not connected, too.
struct Hearsay {
  var table = StatementTable()
  /// By which process of a device what is known of it was said.
  var processes: [DeviceID: [StoreIdentifier: UInt64]] = [:]
  /// Stores whose vector rose, or that this process has not said anything about.
  var unsaid: Set<StoreIdentifier> = []
  /// When this process last said something about a store, by the monotonic clock.
  var saidAt: [StoreIdentifier: UInt64] = [:]
  /// Stores of which statements are to be compared with the vector anew.
  var unmatched: Set<StoreIdentifier> = []
  /// When a store's vector last rose, by the monotonic clock.
  var roseAt: [StoreIdentifier: UInt64] = [:]
  /// When something is said or passed on next, by the monotonic clock.
  var nextAt: UInt64?
  /// When it is looked at next who is left behind, and who was.
  var nextLookAt: UInt64 = 0
  var leftBehind: [DeviceID] = []
}

extension Replica {
  /// A store's vector is another, mostly since it rose: this device is to say so, and what others said may be the same now.
  mutating func vectorChanged(in identifier: StoreIdentifier) {
    hearsay.roseAt[identifier] = now.monotonicMilliseconds
    hearsay.unmatched.insert(identifier)
    hearsay.unsaid.insert(identifier)
    planHearsay()
  }

  /// A session exchanges stores now: each process says once what it starts from, for it may be less
  /// than what the one before it covered.
  mutating func beginHearsay() {
    for identifier in stores.keys where hearsay.saidAt[identifier] == nil {
      hearsay.unsaid.insert(identifier)
    }
    planHearsay()
  }

  /// Everything that is said or passed on within a moment goes in one message.
  func needsHearsay() -> Bool {
    !hearsay.unsaid.isEmpty || !hearsay.unmatched.isEmpty
      || sessions.values.contains { $0.isExchanging && !$0.unpassed.isEmpty && $0.takesMore }
  }

  mutating func planHearsay() {
    guard needsHearsay(), sessions.values.contains(where: \.isExchanging) else { return }
    let wait = Limits.hearsayMilliseconds
    if let next = hearsay.nextAt, next <= now.monotonicMilliseconds + wait { return }
    let jitter = UInt64(entropy.draw(Digest128.self).bytes[0])
    plan(hearsayAt: now.monotonicMilliseconds + wait / 2 + wait * jitter / 512)
  }

  private mutating func plan(hearsayAt time: UInt64) {
    hearsay.nextAt = min(hearsay.nextAt ?? .max, time)
  }

  /// Says what this device covers, and passes on what others said, to every peer that has not said
  /// the same.
  mutating func passOn() {
    guard let due = hearsay.nextAt, due <= now.monotonicMilliseconds else { return }
    hearsay.nextAt = nil
    matchStatements()
    sayOwn()
    for id in sessions.keys.sorted() {
      guard let session = sessions[id], session.isExchanging, session.takesMore,
        !session.unpassed.isEmpty
      else { continue }
      let statements = session.unpassed.sorted().compactMap { name -> Statement? in
        guard roster.isMember(name.device) else { return nil }
        return hearsay.table[name.store, name.device]
      }
      sessions[id]?.unpassed = []
      for message in Have.messages(passingOn: statements, time: toldTime) {
        effects.append(.send(id, message))
      }
    }
  }

  /// Forgets what revoked devices said, and says anew what is covered, for that is without their
  /// chains now.
  mutating func forgetHearsay(of revoked: Set<DeviceID>) {
    let roster = roster
    hearsay.table.keep(only: roster.isMember)
    for device in revoked { hearsay.processes[device] = nil }
    for identifier in stores.keys { vectorChanged(in: identifier) }
  }

  // MARK: Saying

  /// Signs what is covered of stores whose vector rose. While it goes on rising that is done the less
  /// often the more devices there are to hear it.
  private mutating func sayOwn() {
    let pace = UInt64(roster.memberCount) * Limits.statementPaceMilliseconds
    for identifier in hearsay.unsaid.sorted() {
      if let said = hearsay.saidAt[identifier], now.monotonicMilliseconds < said + pace {
        plan(hearsayAt: said + pace)
        continue
      }
      hearsay.unsaid.remove(identifier)
      guard let store = stores[identifier] else { continue }
      hearsay.saidAt[identifier] = now.monotonicMilliseconds
      let vector = store.log.vector
      var risen = store.risen(keys.id)
      if Canary.stateWhatIsNotStored.isPlanted { risen = risen.mapValues { $0 + 1 } }
      let statement = Statement(
        identifier, clock: timeKeeper.tickForAll(), process: process.tag,
        vectorDigest: Statement.digest(of: vector), risen: risen,
        account: account, keys: keys)
      if hearsay.table.insert(statement) { queue(statement, except: nil) }
    }
  }

  private mutating func queue(_ statement: Statement, except source: SessionID?) {
    let name = StatementName(store: statement.store, device: statement.device)
    for id in sessions.keys where id != source && exchanges(id) {
      sessions[id]?.unpassed.insert(name)
    }
    if let source { sessions[source]?.unpassed.remove(name) }
  }

  // MARK: Hearing

  /// Takes in statements that a peer made or passed on; their signatures were checked when the message
  /// was decoded.
  mutating func hear(_ statements: [Statement], on id: SessionID) {
    var ours: [StoreIdentifier: OwnVector] = [:]
    for statement in statements
    where roster.isMember(statement.device) && stores[statement.store] != nil {
      if timeKeeper.wait(for: statement.clock) != nil {
        // Of our own it says that something ahead had left this device before its clock was set back.
        if statement.device == keys.id, timeKeeper.isCertain,
          statement.clock.generation == timeKeeper.generation
        {
          timeKeeper.witness(statement.clock)
          healIfAhead()
        }
        continue
      }
      let name = StatementName(store: statement.store, device: statement.device)
      if let held = hearsay.table[statement.store, statement.device], held.clock >= statement.clock
      {
        // What the peer has is ours, or older and made good by it.
        if held.clock == statement.clock {
          sessions[id]?.unpassed.remove(name)
        } else {
          sessions[id]?.unpassed.insert(name)
        }
        continue
      }
      if statement.device == keys.id {
        // An earlier process of this device said it: what this one says must be later.
        timeKeeper.witness(statement.clock)
        hearsay.saidAt[statement.store] = nil
        hearsay.unsaid.insert(statement.store)
        continue
      }
      guard hearsay.table.insert(statement) else { continue }
      queue(statement, except: id)
      let own = ours[statement.store] ?? ownVector(of: statement.store)
      ours[statement.store] = own
      believe(statement, comparedWith: own)
    }
    planHearsay()
  }

  /// A peer holds other statements about a store than this device: it is sent all.
  mutating func compareHearsay(_ theirs: StoreHave, on id: SessionID) {
    guard let digest = theirs.statements, digest != hearsay.table.digest(of: theirs.store) else {
      return
    }
    for device in hearsay.table.statements(of: theirs.store).keys {
      sessions[id]?.unpassed.insert(StatementName(store: theirs.store, device: device))
    }
    planHearsay()
  }

  /// A session is over, whose other end alone spoke for its device: what another process of the
  /// device, a later one or that of its original, has said since it began counts from here on.
  mutating func endHearsay(of device: DeviceID, _ hello: Hello) {
    for identifier in stores.keys {
      guard let statement = hearsay.table[identifier, device],
        statement.process != hello.process.tag, statement.clock > hello.clock
      else { continue }
      hearsay.unmatched.insert(identifier)
    }
    planHearsay()
  }

  /// This device's own vector of a store, as statements are compared with it.
  private struct OwnVector {
    var vector: [ChainID: UInt64]
    var digest: Digest256
  }

  private func ownVector(of identifier: StoreIdentifier) -> OwnVector {
    let vector = stores[identifier]?.log.vector ?? [:]
    return OwnVector(vector: vector, digest: Statement.digest(of: vector))
  }

  private mutating func matchStatements() {
    for identifier in hearsay.unmatched.sorted() {
      let own = ownVector(of: identifier)
      for statement in hearsay.table.statements(of: identifier).values
      where statement.device != keys.id {
        believe(statement, comparedWith: own)
      }
    }
    if !hearsay.unmatched.isEmpty { effects.append(.progress) }
    hearsay.unmatched = []
  }

  /// Remembers what a device says that it covers: what rose up to a signed header that came here, and
  /// all of our vector where it says that it has the same.
  ///
  /// Another process than the one that spoke before may cover less, so what was known before counts
  /// no more. While the device is connected, only the process at the other end speaks for it.
  private mutating func believe(_ statement: Statement, comparedWith own: OwnVector) {
    let (device, identifier) = (statement.device, statement.store)
    guard let log = stores[identifier]?.log else { return }
    let connected = sessions.values.first { $0.isExchanging && $0.device == device }
    if let connected, connected.peer.hello.process.tag != statement.process { return }
    let isSame = hearsay.processes[device]?[identifier] == statement.process
    var known = isSame ? knowledge[device]?[identifier] ?? [:] : [:]
    if statement.vectorDigest == own.digest {
      // Taken whole where it can be, so that all devices that cover the same share one.
      if known.allSatisfy({ $0.value <= own.vector[$0.key] ?? 0 }) {
        known = own.vector
      } else {
        known.merge(own.vector, uniquingKeysWith: max)
      }
    }
    for (chain, sequence) in statement.risen {
      let believed = min(sequence, log.chains[chain]?.received ?? 0)
      if believed > known[chain] ?? 0 { known[chain] = believed }
    }
    hearsay.processes[device, default: [:]][identifier] = statement.process
    knowledge[device, default: [:]][identifier] = known
  }

  // MARK: Who is left behind

  /// Says anew, now and then, which members are not known to cover what has not changed for long, so
  /// that the network dials them: the overlay may have come apart.
  mutating func lookForLeftBehind() {
    guard now.monotonicMilliseconds >= hearsay.nextLookAt else { return }
    hearsay.nextLookAt = now.monotonicMilliseconds + Limits.haveIntervalMilliseconds
    let connected = Set(sessions.values.compactMap(\.device))
    let settled = stores.filter { identifier, store in
      let rose = hearsay.roseAt[identifier] ?? 0
      return now.monotonicMilliseconds >= rose + Limits.leftBehindMilliseconds
    }.mapValues(\.log.vector)
    let behind = roster.sortedMembers.map(\.device).filter { device in
      guard device != keys.id, !connected.contains(device) else { return false }
      return settled.contains { identifier, vector in
        let known = knowledge[device]?[identifier] ?? [:]
        return known != vector && !vector.allSatisfy { known[$0.key] ?? 0 >= $0.value }
      }
    }
    guard behind != hearsay.leftBehind else { return }
    hearsay.leftBehind = behind
    effects.append(.leftBehind(behind))
  }
}

extension Roster {
  /// How many devices are the account's now.
  ///
  /// - Complexity: O(*n*).
  fileprivate var memberCount: Int { membership.paths.keys.count { isMember($0) } }
}
