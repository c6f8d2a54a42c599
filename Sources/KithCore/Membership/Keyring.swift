package import KithCrypto

/// A device's open epochs, and the keys shared with authors; each is computed once
/// (`Docs/Protocol.md`, "Entries and change sets").
package struct Keyring: Sendable {
  private var epochKeys: [EpochID: EpochKeys] = [:]
  /// Records whose box was tried.
  private var tried: Set<Digest256> = []
  private var sharedBoxes: [SharedPair: SharedBox] = [:]

  /// The open epochs: ``current``, then the trusted and sound ones, then the others; each part by
  /// generation from the highest, then by id.
  package private(set) var newestFirst: [EpochKeys] = []

  /// The parents of a next epoch, ascending, and their generation: the highest among open epochs
  /// that are proven, or trusted and sound.
  private(set) var next: (parents: [EpochID], generation: UInt32) = ([], 0)

  /// The epoch to publish under: open, usable, of the highest generation, then the smallest id. See
  /// also ``goOn(despite:in:)``.
  package private(set) var current: EpochKeys?

  /// Whether only lockboxes for revoked devices prevent publishing under the newest epoch.
  private(set) var isNewestLeaked = false

  /// Revoked devices whose lockboxes no longer prevent publishing under the newest epoch.
  private var disregarded: Set<DeviceID> = []

  private struct SharedPair: Hashable {
    var epoch: EpochID
    var author: BoxPublicKey
  }

  package init() {}

  package subscript(id: EpochID) -> EpochKeys? { epochKeys[id] }

  /// Opens the device's untried boxes, and chooses ``current``. Call it after each change of the
  /// roster.
  ///
  /// - Complexity: O(*r*) in the records, and one X25519 for each new box.
  package mutating func refresh(from roster: Roster, keys: DeviceKeys) {
    let states = roster.epochStates()
    let secrets = roster.secrets(for: keys.id)
    forgetBeyondLimits(states, secrets.map(\.record))
    for (record, id, box) in secrets {
      guard epochKeys[id] == nil, epochKeys.count < MembershipLimits.epochKeys,
        let state = states[id], tried.insert(record).inserted
      else { continue }
      epochKeys[id] = EpochKeys.open(
        box, of: id, generation: state.epoch.generation, with: keys.box)
    }
    choose(from: roster, states)
  }

  mutating func refresh(from roster: Roster, recovery: RecoveryKey) {
    let states = roster.epochStates()
    for (record, epoch) in roster.epochRecords {
      guard epochKeys[epoch.id] == nil, epochKeys.count < MembershipLimits.epochKeys,
        tried.insert(record.id).inserted
      else { continue }
      epochKeys[epoch.id] = EpochKeys.open(
        epoch.recoverySecret, of: epoch.id,
        generation: states[epoch.id]?.epoch.generation ?? epoch.generation, with: recovery.box)
    }
    choose(from: roster, states)
  }

  /// Returns the key that seals and opens an author's entries under an epoch. Nil if the epoch is
  /// not open, or the author's box key is of low order.
  ///
  /// - Complexity: one X25519 the first time.
  package mutating func sharedBox(epoch: EpochID, author: Certificate) -> SharedBox? {
    let pair = SharedPair(epoch: epoch, author: author.boxKey)
    if let known = sharedBoxes[pair] { return known }
    guard let keys = epochKeys[epoch], let box = try? SharedBox(keys.box, with: author.boxKey)
    else {
      return nil
    }
    if sharedBoxes.count >= MembershipLimits.sharedBoxes { sharedBoxes.removeAll() }
    sharedBoxes[pair] = box
    return box
  }

  /// Publishes under the newest epoch from now on, although it leaked to `revoked`: the member that
  /// leaked it would leak the next one too. If a further recipient is revoked, this ends.
  mutating func goOn(despite revoked: Set<DeviceID>, in roster: Roster) {
    disregarded = revoked
    choose(from: roster, roster.epochStates())
  }

  /// Forgets the data that the roster dropped: records at once, epochs only at the limit of open
  /// ones.
  private mutating func forgetBeyondLimits(
    _ states: [EpochID: Roster.EpochState], _ records: [Digest256]
  ) {
    tried.formIntersection(records)
    guard epochKeys.count >= MembershipLimits.epochKeys else { return }
    epochKeys = epochKeys.filter { states[$0.key] != nil }
  }

  private mutating func choose(
    from roster: Roster, _ states: [EpochID: Roster.EpochState]
  ) {
    func generation(_ keys: EpochKeys) -> UInt32 {
      states[keys.id]?.epoch.generation ?? keys.generation
    }
    let newest = epochKeys.values.sorted {
      let (left, right) = (generation($0), generation($1))
      return left != right ? left > right : $0.id < $1.id
    }
    // Otherwise a liar or a revoked member could put its epochs before the common ones.
    func counts(_ keys: EpochKeys) -> Bool {
      states[keys.id].map { $0.isTrusted && $0.isSound } ?? false
    }
    let counting = newest.filter(counts)
    let sorted = counting + newest.filter { !counts($0) }
    current = counting.first { keys in states[keys.id].map(roster.isUsable) ?? false }
    let newestStates = counting.filter { generation($0) == counting.first.map(generation) }
      .compactMap { states[$0.id] }
    isNewestLeaked = current == nil && newestStates.contains(where: roster.isLeaked)
    if current == nil, !disregarded.isEmpty {
      current = counting.first { keys in
        guard let state = states[keys.id], newestStates.contains(where: { $0.epoch.id == keys.id })
        else { return false }
        return roster.isLeaked(state)
          && state.recipients.intersection(roster.membership.revoked).isSubset(of: disregarded)
      }
    }
    let first = current?.id
    newestFirst = sorted.filter { $0.id == first } + sorted.filter { $0.id != first }
    // Any other epoch could use up the generations.
    let candidates = newest.filter { keys in
      states[keys.id].map { $0.isProven || $0.isTrusted && $0.isSound } ?? false
    }
    let highest = candidates.first.map(generation) ?? 0
    next = (candidates.filter { generation($0) == highest }.map(\.id).sorted(), highest)
  }
}
