internal import KithCrypto

/// A store's kept change sets: those with an entry that still counts, and the newest of each chain
/// (`Docs/Protocol.md`, "Entries and change sets").
struct ChangeSetLog {
  struct Chain: Hashable {
    /// The sequence up to which all is covered.
    var covered: UInt64 = 0
    /// The highest sequence of a signed header received; it limits ``covered``.
    var received: UInt64 = 0
    /// Kept digests, by sequence; several of one are a fork.
    var kept: [UInt64: [Digest256]] = [:]
  }

  private(set) var chains: [ChainID: Chain] = [:]
  /// The incarnations of each device with a chain.
  private(set) var incarnations: [DeviceID: Set<Incarnation>] = [:]
  /// The covered sequence of each chain that is not withheld.
  private(set) var vector: [ChainID: UInt64] = [:]
  private(set) var changeSets: [ChangeSetReference: KeptChangeSet] = [:]
  /// Bytes kept, by author.
  private(set) var weights = AuthorWeights()
  /// Oldest first.
  private(set) var quarantined: [EntryLocation] = []
  /// Revoked devices whose data is to be carried over or dropped.
  private(set) var withheld: Set<DeviceID> = []
  /// The coverage of chains when damage was found, until they are covered so far again.
  private(set) var lost: [ChainID: UInt64] = [:]

  /// An entry of the vector, with the latest publishing clock of the chain's newest header.
  struct Published {
    let clock: HybridTime
    let chain: ChainID
    let covered: UInt64
  }

  /// The vector's entries of the chains that published last, the latest first. They follow from the
  /// covered change sets, so devices that cover the same get the same.
  ///
  /// - Complexity: O(*n* log *n*) in the chains.
  func latest(_ count: Int, of vector: [ChainID: UInt64]) -> [Published] {
    let published = vector.map { chain, covered in
      let last = chains[chain]?.received ?? 0
      let clocks = (chains[chain]?.kept[last] ?? []).compactMap {
        changeSets[
          ChangeSetReference(
            device: chain.device, incarnation: chain.incarnation, sequence: last, digest: $0)
        ]?.clock
      }
      return Published(clock: clocks.max() ?? .zero, chain: chain, covered: covered)
    }
    let latest = published.sorted { ($1.clock, $0.chain) < ($0.clock, $1.chain) }
    return Array(latest.prefix(count))
  }

  /// Whether there is data that the vector does not cover.
  var holdsUncovered: Bool {
    chains.values.contains { $0.received > $0.covered } || holdsWithheld
  }

  func isCovered(_ header: ChangeSetHeader) -> Bool {
    header.sequence <= chains[header.chain]?.covered ?? 0
  }

  func knows(_ reference: ChangeSetReference) -> Bool {
    changeSets[reference] != nil
  }

  func isFork(_ reference: ChangeSetReference) -> Bool {
    guard let digests = chains[reference.chain]?.kept[reference.sequence] else { return false }
    return digests.contains { $0 != reference.digest }
  }

  /// Returns the chain's former newest one, which may be dropped.
  @discardableResult
  mutating func insert(_ changeSet: ChangeSet) -> [ChangeSetReference] {
    let reference = changeSet.reference
    let id = changeSet.header.chain
    let previous = chains[id]?.received ?? 0
    receive(id, through: reference.sequence)
    chains[id]?.kept[reference.sequence, default: []].append(reference.digest)
    let kept = KeptChangeSet(changeSet)
    changeSets[reference] = kept
    weights.add(kept.weight, of: reference.device)
    guard previous > 0, previous < reference.sequence else { return [] }
    return (chains[id]?.kept[previous] ?? []).map {
      ChangeSetReference(
        device: id.device, incarnation: id.incarnation, sequence: previous, digest: $0)
    }
  }

  private mutating func receive(_ id: ChainID, through sequence: UInt64) {
    incarnations[id.device, default: []].insert(id.incarnation)
    chains[id, default: Chain()].received = max(chains[id]?.received ?? 0, sequence)
  }

  private mutating func setCovered(_ id: ChainID, _ covered: UInt64) {
    chains[id]?.covered = covered
    vector[id] = covered > 0 && !withheld.contains(id.device) ? covered : nil
  }

  /// Covers a chain up to a sequence, limited by received headers. Returns the covered sequence if
  /// it rose.
  mutating func cover(_ id: ChainID, through sequence: UInt64) -> UInt64? {
    guard let chain = chains[id], !withheld.contains(id.device) else { return nil }
    let believed = min(sequence, chain.received)
    guard believed > chain.covered else { return nil }
    setCovered(id, believed)
    return believed
  }

  mutating func restore(_ id: ChainID, covered: UInt64) {
    // Only damage loses the newest header; its sequence is not given again.
    receive(id, through: covered)
    setCovered(id, covered)
  }

  // MARK: Withholding

  mutating func withhold(_ devices: Set<DeviceID>) {
    withheld.formUnion(devices)
    vector = vector.filter { !withheld.contains($0.key.device) }
  }

  func isWithheld(_ device: DeviceID) -> Bool { withheld.contains(device) }

  /// Whether data of withheld chains is kept.
  var holdsWithheld: Bool {
    withheld.contains { incarnations[$0] != nil }
  }

  mutating func dropWithheld(in store: StoreIdentifier) -> [Mutation] {
    guard holdsWithheld else { return [] }
    let withheld = withheld
    return drop(chains: { withheld.contains($0.device) }, in: store)
  }

  // MARK: Damage

  /// Whether damaged data is missing. Nobody returns a revoked device's.
  var hasLost: Bool { lost.keys.contains { !withheld.contains($0.device) } }

  /// Restores a chain's coverage before damage.
  mutating func restore(_ id: ChainID, lost covered: UInt64) {
    lost[id] = max(covered, lost[id] ?? 0)
    // Its sequences are not given again.
    receive(id, through: covered)
  }

  /// Handles damage to an unknown chain: covers nothing, so everything is requested again.
  mutating func lose(in store: StoreIdentifier) -> [Mutation] {
    var mutations: [Mutation] = []
    for (id, covered) in vector.sorted(by: { $0.key < $1.key }) {
      restore(id, lost: covered)
      setCovered(id, 0)
      mutations += [
        .put(.store(store, .lost(id)), (lost[id] ?? covered).row),
        .remove(.store(store, .vector(id))),
      ]
    }
    return mutations
  }

  /// Ends the damage of a chain that is covered so far again.
  mutating func regain(
    _ id: ChainID, through covered: UInt64, in store: StoreIdentifier
  ) -> [Mutation] {
    guard let lost = lost[id], covered >= lost else { return [] }
    self.lost[id] = nil
    return [.remove(.store(store, .lost(id)))]
  }

  /// Drops entries, and change sets left empty except their chain's newest.
  mutating func drop(
    _ locations: [EntryLocation], alsoConsidering candidates: [ChangeSetReference] = [],
    in store: StoreIdentifier
  ) -> [Mutation] {
    var emptied = candidates
    var dropped: [EntryLocation] = []
    for location in locations {
      let before = changeSets[location.changeSet]?.weight ?? 0
      guard changeSets[location.changeSet]?.drop(location.index) == true else { continue }
      let after = changeSets[location.changeSet]?.weight ?? 0
      weights.add(after - before, of: location.changeSet.device)
      if changeSets[location.changeSet]?.isEmpty == true { emptied.append(location.changeSet) }
      dropped.append(location)
    }
    var mutations = dropped.map {
      Mutation.remove(.store(store, .entry($0.changeSet, $0.index)))
    }
    for reference in emptied where isSpent(reference) {
      forget(reference)
      mutations.append(.remove(.store(store, .changeSet(reference))))
    }
    return mutations
  }

  /// - Complexity: O(*n* log *n*) in the change sets kept.
  mutating func drop(chains isDropped: (ChainID) -> Bool, in store: StoreIdentifier) -> [Mutation] {
    var mutations: [Mutation] = []
    for reference in changeSets.keys.sorted() {
      guard let changeSet = changeSets[reference], isDropped(changeSet.chain) else {
        continue
      }
      forget(reference)
      mutations += reference.keys(changeSet.indices, in: store).map { .remove($0) }
    }
    for chain in chains.keys.sorted() where isDropped(chain) {
      setCovered(chain, 0)
      chains[chain] = nil
      incarnations[chain.device]?.remove(chain.incarnation)
      if incarnations[chain.device]?.isEmpty == true { incarnations[chain.device] = nil }
      mutations.append(.remove(.store(store, .vector(chain))))
      if lost.removeValue(forKey: chain) != nil {
        mutations.append(.remove(.store(store, .lost(chain))))
      }
    }
    quarantined.removeAll { changeSets[$0.changeSet] == nil }
    return mutations
  }

  private func isSpent(_ reference: ChangeSetReference) -> Bool {
    guard let changeSet = changeSets[reference], changeSet.isEmpty else { return false }
    return reference.sequence < chains[changeSet.chain]?.received ?? 0
  }

  private mutating func forget(_ reference: ChangeSetReference) {
    guard let changeSet = changeSets.removeValue(forKey: reference) else { return }
    weights.add(-changeSet.weight, of: reference.device)
    let id = changeSet.chain
    chains[id]?.kept[reference.sequence]?.removeAll { $0 == reference.digest }
    if chains[id]?.kept[reference.sequence]?.isEmpty == true {
      chains[id]?.kept[reference.sequence] = nil
    }
  }

  mutating func restore(boxOf bytes: Int, to location: EntryLocation) {
    let before = changeSets[location.changeSet]?.weight ?? 0
    changeSets[location.changeSet]?.restore(location.index, bytes: bytes)
    let after = changeSets[location.changeSet]?.weight ?? 0
    weights.add(after - before, of: location.changeSet.device)
  }

  /// Returns the oldest entries over the limit.
  mutating func quarantine(_ location: EntryLocation) -> [EntryLocation] {
    quarantined.append(location)
    guard quarantined.count > Limits.quarantined else { return [] }
    let excess = quarantined.count - Limits.quarantined
    defer { quarantined.removeFirst(excess) }
    return Array(quarantined.prefix(excess))
  }

  /// Change sets above a vector that are not withheld, in order.
  ///
  /// - Complexity: O(*n* log *n*) in the change sets kept.
  func changeSets(above vector: [ChainID: UInt64]) -> [KeptChangeSet] {
    changeSets.values.filter { changeSet in
      changeSet.sequence > vector[changeSet.chain] ?? 0
        && !withheld.contains(changeSet.reference.device)
    }.sorted { $0.reference < $1.reference }
  }

  /// About how many bytes the change sets above a vector take in a message.
  func bytes(above vector: [ChainID: UInt64]) -> Int {
    changeSets.values.reduce(0) { sum, changeSet in
      let isAbove =
        changeSet.sequence > vector[changeSet.chain] ?? 0
        && !withheld.contains(changeSet.reference.device)
      return isAbove ? sum + changeSet.byteCount : sum
    }
  }
}
