public import KithCrypto

/// The epochs that a device can open, opened once, and the keys shared with authors, computed
/// once (design, sections 4 and 7).
public struct Keyring: Sendable {
  private var opened: [EpochID: EpochKeys] = [:]
  /// The records whose box for this device was tried, whether it opened or not.
  private var tried: Set<Digest256> = []
  private var sharedBoxes: [SharedPair: SharedBox] = [:]

  /// The open epochs: ``current`` first, then by generation from the highest, then by id.
  public private(set) var newestFirst: [EpochKeys] = []

  /// The open epoch to publish under: of those without a revoked recipient the one of the highest
  /// generation, then the smallest id; nil where there is none.
  public private(set) var current: EpochKeys?

  private struct SharedPair: Hashable {
    var epoch: EpochID
    var author: BoxPublicKey
  }

  /// A keyring with nothing in it.
  public init() {}

  /// An open epoch by its id.
  public subscript(id: EpochID) -> EpochKeys? { opened[id] }

  /// Opens what the roster holds for the device and was not tried before, and chooses the current
  /// epoch anew. Call it whenever the roster has learnt something.
  ///
  /// - Complexity: O(*r*) in the roster's records, and one X25519 for each new box.
  public mutating func refresh(from roster: Roster, keys: DeviceKeys) {
    let states = roster.epochStates()
    for (record, id, box) in roster.secrets(for: keys.id) {
      guard opened[id] == nil, opened.count < MembershipLimits.openEpochs,
        let state = states[id], tried.insert(record).inserted
      else { continue }
      opened[id] = EpochKeys.open(
        box, of: id, generation: state.epoch.generation, with: keys.box)
    }
    choose(from: roster, states)
  }

  /// Opens every epoch with the account's recovery key, which each epoch's record serves.
  mutating func refresh(from roster: Roster, recovery: RecoveryKey) {
    let states = roster.epochStates()
    for (record, epoch) in roster.epochRecords {
      guard opened[epoch.id] == nil, opened.count < MembershipLimits.openEpochs,
        tried.insert(record.id).inserted
      else { continue }
      opened[epoch.id] = EpochKeys.open(
        epoch.recoverySecret, of: epoch.id,
        generation: states[epoch.id]?.epoch.generation ?? epoch.generation, with: recovery.box)
    }
    choose(from: roster, states)
  }

  /// The key that an author's entries under an epoch are sealed with: the author computes it from
  /// its own box key and the epoch's, everyone else from the epoch's box key and the author's.
  /// Nil where the epoch is not open, or the author's box key is of low order.
  ///
  /// - Complexity: one X25519 the first time.
  public mutating func sharedBox(epoch: EpochID, author: Certificate) -> SharedBox? {
    let pair = SharedPair(epoch: epoch, author: author.boxKey)
    if let known = sharedBoxes[pair] { return known }
    guard let keys = opened[epoch], let box = try? SharedBox(keys.box, with: author.boxKey) else {
      return nil
    }
    if sharedBoxes.count >= MembershipLimits.sharedBoxes { sharedBoxes.removeAll() }
    sharedBoxes[pair] = box
    return box
  }

  private mutating func choose(
    from roster: Roster, _ states: [EpochID: Roster.EpochState]
  ) {
    let sorted = opened.values.sorted {
      $0.generation != $1.generation ? $0.generation > $1.generation : $0.id < $1.id
    }
    current = sorted.first { keys in
      states[keys.id].map { roster.isUsable($0, among: states) } ?? false
    }
    let first = current?.id
    newestFirst = sorted.filter { $0.id == first } + sorted.filter { $0.id != first }
  }
}
