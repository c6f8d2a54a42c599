internal import KithCrypto

/// A device whose data is ahead of the time drops it, and publishes what it wrote itself again
/// (`Docs/Protocol.md`, "Clocks"). `Docs/Decisions/clocks.md` says why each step is as it is.
extension Replica {
  /// By how much the latest reading given out or witnessed is ahead of the time, in milliseconds.
  var dataAheadMilliseconds: Int64 {
    Int64(clamping: clock.latest.milliseconds) - Int64(clamping: now.wallMilliseconds)
  }

  /// Takes back what is ahead, where the time is certain enough for that. Returns whether it did;
  /// then all sessions have ended.
  @discardableResult
  mutating func mendIfAhead() -> Bool {
    guard dataAheadMilliseconds > Limits.mendingMilliseconds, isTimeCertain,
      incarnation != nil, keyring.current != nil
    else { return false }
    let limit = latestAccepted
    let replaced = ownIncarnations(aheadOf: limit)
    guard usedIncarnations.count + replaced.count <= Limits.incarnations else { return false }
    mend(replacing: replaced, limit)
    return true
  }

  /// Own incarnations with something ahead that no later one of ours replaces: the current one last.
  private func ownIncarnations(aheadOf limit: HybridTime) -> [Incarnation] {
    var ahead = Set<Incarnation>()
    for store in stores.values {
      let own = store.log.chains.keys.filter {
        $0.device == keys.id && store.log.isAhead($0, of: limit)
      }
      let implied = own.compactMap { store.log.replacements[$0]?.incarnation }
      ahead.formUnion(Set(own.map(\.incarnation)).subtracting(implied))
    }
    return ahead.sorted { ($0 == incarnation ? 1 : 0, $0) < ($1 == incarnation ? 1 : 0, $1) }
  }

  private mutating func mend(replacing replaced: [Incarnation], _ limit: HybridTime) {
    let ahead = dataAheadMilliseconds
    let shown = stores.mapValues(\.state.shown)
    let hadOwn = Dictionary(
      uniqueKeysWithValues: replaced.map { incarnation in
        let chain = ChainID(device: keys.id, incarnation: incarnation)
        return (
          incarnation,
          stores.keys.sorted().filter { stores[$0]?.log.isAhead(chain, of: limit) == true }
        )
      })
    var mutations: [Mutation] = []
    var dropped: [StoreIdentifier: [KeptEntry]] = [:]
    var touched: [StoreIdentifier: Set<Key>] = [:]
    var drafts: [StoreIdentifier: [Draft]] = [:]
    for identifier in stores.keys.sorted() {
      guard var store = stores.removeValue(forKey: identifier) else { continue }
      let gone = store.dropAhead(of: limit, author: keys.id)
      mutations += gone.mutations
      dropped[identifier] = Canary.forgetWhatIsMended.isPlanted ? [] : gone.own
      touched[identifier] = gone.touched
      drafts[identifier] = store.replaceDrafts(with: [])
      stores[identifier] = store
    }
    let kept = stores.values.flatMap { store in
      store.log.changeSets.values.map(\.clock)
    }
    let drafted = drafts.values.flatMap { $0.map(\.clock) }
    clock = HybridClock(latest: (kept + drafted).filter { $0 <= limit }.max() ?? .zero)
    let first = tick()
    for incarnation in replaced {
      // What was dropped here counts nowhere, and nothing else: what this directory does not know
      // of its own, for it was put back from an old copy, was published by a clock that was right.
      takeIncarnation(replacing: Replacement(incarnation: incarnation, cutoff: limit))
      for identifier in hadOwn[incarnation] ?? [] where incarnation != replaced.last {
        mutations += publish(identifier, evenIfEmpty: true).mutations
      }
    }
    for identifier in stores.keys.sorted() {
      var restamper = Restamper(first: first)
      let isReplaced = replaced.last.map { hadOwn[$0]?.contains(identifier) == true } ?? false
      mutations += redo(
        dropped[identifier] ?? [], drafts[identifier] ?? [], in: identifier, with: &restamper,
        evenIfEmpty: isReplaced, shown: shown[identifier] ?? [:], touched[identifier] ?? [])
    }
    if !replaced.isEmpty, let incarnation { mutations.append(.setIncarnation(incarnation)) }
    effects.append(.persist(mutations + [.setClock(clock.latest)]))
    counters.mendings += 1
    effects.append(.report(.mended(milliseconds: ahead)))
    // What peers know of us, and we of them, is of what was.
    for identifier in stores.keys.sorted() { vectorChanged(in: identifier) }
    for id in sessions.keys.sorted() {
      effects.append(.close(id, .clockMended))
      disconnect(id)
    }
  }

  /// Publishes own values again, and lays the drafts anew on them.
  private mutating func redo(
    _ own: [KeptEntry], _ drafts: [Draft], in identifier: StoreIdentifier,
    with restamper: inout Restamper, evenIfEmpty: Bool, shown: [Key: Shown], _ touched: Set<Key>
  ) -> [Mutation] {
    let first = restamper.first
    var mutations: [Mutation] = []
    let transactions = Draft.transactions(of: own.map(\.entry), by: keys.id).map { draft in
      restamper.restamped(draft) { tick() }
    }
    _ = stores[identifier]?.replaceDrafts(with: transactions)
    let author = keys.id
    var recheck = stores[identifier]?.recheckDrafts(author: author) ?? .init()
    // Entries of a revoked device that we carried over stay as they are.
    for entry in own.map(\.entry) where entry.stamp.device != keys.id {
      guard entry.stamp.clock <= first, entry.claim.clock <= first,
        stores[identifier]?.state.drafted[entry.key] == nil
      else { continue }
      stores[identifier]?.state.setDraft(
        KeptEntry(entry: entry, digest: .zero, home: nil), of: entry.key)
    }
    if evenIfEmpty || stores[identifier]?.state.drafted.isEmpty == false {
      mutations += publish(identifier, evenIfEmpty: evenIfEmpty).mutations
    }
    let later = drafts.map { draft in restamper.restamped(draft) { tick() } }
    stores[identifier]?.append(later)
    let laid = stores[identifier]?.recheckDrafts(author: author) ?? .init()
    recheck.add(laid)
    mutations += recheck.mutations + (stores[identifier]?.makeDraftsDurable() ?? [])
    var changes: [(key: Key, value: EncodedValue?)] = []
    if var store = stores.removeValue(forKey: identifier) {
      _ = store.state.refresh(touched)
      changes = store.state.changes(since: shown)
      stores[identifier] = store
    }
    var intake = Intake(taint: Taint())
    intake.touched = touched.union(changes.map(\.key))
    show(changes, of: identifier, intake, recheck)
    return mutations
  }

  /// Begins an incarnation that stands in the place of another; made durable with what it publishes.
  private mutating func takeIncarnation(replacing replacement: Replacement) {
    incarnation = drawIncarnation()
    self.replacement = replacement
  }

  // MARK: Others' mending

  /// Notes what a change set's chain stands in the place of, and drops what counts no more.
  mutating func learnReplacement(
    of header: ChangeSetHeader, into store: inout StoreReplica, noting intake: inout Intake
  ) {
    for chain in store.log.learnReplacement(of: header).sorted() {
      let gone = store.dropVoid(of: chain)
      intake.mutations += gone.mutations
      intake.touched.formUnion(gone.touched)
      intake.hasDropped = intake.hasDropped || !gone.entries.isEmpty
      guard chain.device == keys.id, let cutoff = store.log.cutoffs[chain] else { continue }
      // A copy of our directory was mended. What only we have of that incarnation is published again
      // as of its end.
      let drafts = Draft.transactions(of: gone.entries.map(\.entry), by: keys.id)
      store.prepend(drafts.map { Draft(ordinal: 0, clock: cutoff, operations: $0.operations) })
      if chain.incarnation == incarnation { intake.needsNewIncarnation = true }
    }
  }
}

/// Gives transactions new stamps, in order, from the first that is ahead on.
private struct Restamper {
  let first: HybridTime
  private var hasBegun = false

  init(first: HybridTime) {
    self.first = first
  }

  mutating func restamped(_ draft: Draft, by tick: () -> HybridTime) -> Draft {
    guard !draft.clock.isAdopted, hasBegun || draft.clock > first else { return draft }
    hasBegun = true
    return Draft(ordinal: draft.ordinal, clock: tick(), operations: draft.operations)
  }
}

extension Draft {
  /// The transactions that published entries of one author were, as far as they are kept: all
  /// entries of one have the same stamp.
  fileprivate static func transactions(of entries: [Entry], by author: DeviceID) -> [Draft] {
    let own = entries.filter { $0.stamp.device == author }
    return Dictionary(grouping: own, by: \.stamp.clock).sorted { $0.key < $1.key }.map {
      clock, entries in
      Draft(
        ordinal: 0, clock: clock,
        operations: entries.sorted { $0.key < $1.key }.map {
          Operation(key: $0.key.text, value: $0.value)
        })
    }
  }
}

extension StoreReplica.Recheck {
  fileprivate mutating func add(_ other: Self) {
    mutations += other.mutations
    refusals += other.refusals
    superseded.formUnion(other.superseded)
    refused.formUnion(other.refused)
  }
}

extension StoreReplica {
  /// Drops what was published after a reading: our own change sets keep their newest header, others'
  /// go whole, for nobody has said that they do not count. Drafts stay.
  fileprivate mutating func dropAhead(
    of limit: HybridTime, author: DeviceID
  ) -> (own: [KeptEntry], touched: Set<Key>, mutations: [Mutation]) {
    let ahead = log.changeSets.values.filter { $0.clock > limit && !log.isVoid($0) }
      .map(\.reference).sorted()
    let (own, others) = (
      ahead.filter { $0.device == author }, ahead.filter { $0.device != author }
    )
    let dropped = drop(entriesOf: Set(ahead))
    _ = state.refresh(dropped.map(\.entry.key))
    if !ahead.isEmpty { mayLack = true }
    var mutations = log.forget(unheard: others, in: identifier)
    mutations += log.void(own, in: identifier)
    let kept = dropped.filter { $0.home?.changeSet.device == author }
    return (
      kept.sorted { $0.entry.stamp < $1.entry.stamp }, Set(dropped.map(\.entry.key)), mutations
    )
  }

  /// Drops what a chain published after its cutoff.
  fileprivate mutating func dropVoid(
    of chain: ChainID
  ) -> (entries: [KeptEntry], touched: Set<Key>, mutations: [Mutation]) {
    let void = log.changeSets.values.filter { $0.chain == chain && log.isVoid($0) }
      .map(\.reference).sorted()
    let dropped = drop(entriesOf: Set(void))
    if !dropped.isEmpty { mayLack = true }
    return (dropped, Set(dropped.map(\.entry.key)), log.void(void, in: identifier))
  }

  /// Puts drafts behind those that there are.
  fileprivate mutating func append(_ new: [Draft]) {
    guard !new.isEmpty else { return }
    let old = replaceDrafts(with: [])
    _ = replaceDrafts(with: old + new)
  }

  /// Puts drafts before those that there are.
  fileprivate mutating func prepend(_ new: [Draft]) {
    guard !new.isEmpty else { return }
    let old = replaceDrafts(with: [])
    _ = replaceDrafts(with: new + old)
  }
}

extension ChangeSetLog {
  /// Whether a change set counts no more, since a mended clock's incarnation replaced its own.
  func isVoid(_ header: ChangeSetHeader) -> Bool { isVoid(header.chain, header.clock) }

  func isVoid(_ changeSet: KeptChangeSet) -> Bool { isVoid(changeSet.chain, changeSet.clock) }

  private func isVoid(_ chain: ChainID, _ clock: HybridTime) -> Bool {
    if Canary.keepWhatIsReplaced.isPlanted { return false }
    return cutoffs[chain].map { clock > $0 } ?? false
  }

  /// Whether the newest of a chain was published after a reading, and no cutoff before it.
  fileprivate func isAhead(_ chain: ChainID, of limit: HybridTime) -> Bool {
    guard let newest = chains[chain]?.kept.max(by: { $0.key < $1.key }) else { return false }
    let isLate = newest.value.contains { digest in
      let reference = ChangeSetReference(
        device: chain.device, incarnation: chain.incarnation, sequence: newest.key, digest: digest)
      return changeSets[reference].map { $0.clock > limit } ?? false
    }
    return isLate && cutoffs[chain].map { $0 > limit } ?? true
  }

  /// Drops all entries of change sets; the newest of a chain keeps its header.
  fileprivate mutating func void(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) -> [Mutation] {
    unquarantine(Set(references))
    let homes = references.flatMap { reference in
      (changeSets[reference]?.indices ?? []).map {
        EntryHome(changeSet: reference, index: $0)
      }
    }
    return drop(homes, alsoConsidering: references, in: store)
  }
}

extension ChangeSet {
  /// The header alone.
  var withoutEntries: ChangeSet {
    var changeSet = self
    changeSet.stored.entries = [:]
    return changeSet
  }
}
