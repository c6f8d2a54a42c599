internal import KithCrypto

/// This device as a carrier's objects are compared with it.
struct CarrierReader {
  struct Own {
    var vector: [ChainID: UInt64]
    var digest: Digest256
    var horizon = Horizon()
    var policy: Policy
    /// Authors whose chains this device refuses to keep.
    var refused: Set<DeviceID>

    /// Whether a parcel tells this state.
    func isTold(by store: Parcel.Store) -> Bool {
      store.have.vector == vector && store.have.digest == digest
    }
  }

  let device: DeviceID
  let stores: [StoreIdentifier: Own]
  let roster: Roster
  let rosterDigest: Digest256
  /// The newest epoch; nil: none is open.
  let epoch: EpochKeys?
  /// The open epochs, ``epoch`` first.
  let epochs: [EpochKeys]
  let timeKeeper: TimeKeeper
  let parcelsBeforeFold: Int
  /// Whether this device holds entries back, so that an object would say more than it brings.
  let isWithholding: Bool

  var now: Instant { timeKeeper.now }

  /// The epoch that objects are put under now; nil: none may be put.
  var writing: EpochKeys? { isWithholding ? nil : epoch }

  /// A digest of the roster, the policies and the refused authors. Besides a parcel's content, they
  /// decide whether it can be taken in whole: if they changed, a parcel that was held back is got
  /// again.
  var circumstances: Digest256 {
    var hasher = Blake2b.Hasher()
    hasher.update(rosterDigest)
    for (store, own) in stores.sorted(by: { $0.key < $1.key }) {
      hasher.update(Blake2b.digest256(Array(store.rawValue.utf8)))
      let policy = own.policy
      for number in [policy.totalBytes, policy.keys, policy.keyBytes, policy.valueBytes] {
        hasher.update(UInt64(number).bigEndianBytes)
      }
      for author in own.refused.sorted() { hasher.update(author) }
    }
    return hasher.digest256()
  }

  /// Whether this device has all of a vector. Chains of revoked devices, and those that it refuses,
  /// count in no comparison.
  func covers(_ vector: [ChainID: UInt64], of store: StoreIdentifier) -> Bool {
    Self.contains(vector, in: stores[store]?.vector ?? [:]) { isIgnored($0, in: store) }
  }

  func isIgnored(_ chain: ChainID, in store: StoreIdentifier) -> Bool {
    roster.isRevoked(chain.device) || stores[store]?.refused.contains(chain.device) == true
  }

  static func contains(
    _ part: [ChainID: UInt64], in whole: [ChainID: UInt64], except isIgnored: (ChainID) -> Bool
  ) -> Bool {
    part.allSatisfy { chain, sequence in
      sequence <= whole[chain] ?? 0 || isIgnored(chain)
    }
  }

  /// Whether a parcel has the same vector as this device and another digest: one of them lacks
  /// something that it covers.
  func isOdd(_ store: Parcel.Store) -> Bool {
    isRepair(store) && covers(store.have.vector, of: store.have.store)
  }

  /// Whether a parcel's author covered all that this device covers, and has another state. So what
  /// it kept is no older than this device's state, which may lack some of it.
  func isRepair(_ store: Parcel.Store) -> Bool {
    let (identifier, vector) = (store.have.store, store.have.vector)
    guard let own = stores[identifier], let digest = store.have.digest, digest != own.digest,
      !vector.keys.contains(where: { roster.isRevoked($0.device) })
    else { return false }
    return Self.contains(own.vector, in: vector) { isIgnored($0, in: identifier) }
  }

  enum OnStore {
    case take(Batch, Taint)
    /// The store is left out.
    case otherLimits(ours: Policy)
    /// The messages are in disorder: it cannot be judged.
    case disorder
  }

  /// The data of one store in a parcel that is ready. `room` bounds it.
  func open(
    _ store: Parcel.Store, of parcel: Parcel, _ messages: [InboundMessage], keeping room: BatchRoom
  ) -> OnStore {
    let (identifier, own) = (store.have.store, stores[store.have.store])
    if let own, own.policy != store.have.policy { return .otherLimits(ours: own.policy) }
    var assembly = BatchAssembly()
    var assembled = (batch: Batch(store: identifier), taint: Taint())
    assembling: for message in messages {
      guard case .batch(let part) = message.body, part.store == identifier else { continue }
      switch assembly.add(part, size: message.size, keeping: room) {
      case .more: continue
      case .whole(let batch, let taint):
        assembled = (batch, taint)
        break assembling
      case .unwanted, .violation: return .disorder
      }
    }
    var batch = assembled.batch
    batch.isEverything = store.isEverything && isRepair(store)
    batch.isUnfinished = false
    batch.answers = 0
    batch.covers = parcel.part.isLast ? store.covers : []
    (batch.horizon, batch.isFromBelow) = (store.have.horizon, store.have.isBelow)
    if !batch.isEverything {
      // Objects may be old: nothing that is covered is taken in again.
      let vector = own?.vector ?? [:]
      batch.changeSets.removeAll { $0.header.sequence <= vector[$0.header.chain] ?? 0 }
    }
    return .take(batch, assembled.taint)
  }

  enum Verdict: Equatable {
    /// It is the answer to this device's own `Have`.
    case ready
    /// It is above something that this device does not cover, or too early.
    case waits
    /// Its author is unknown.
    case cannotJudge
    /// Its author is revoked: nothing of it counts.
    case void
  }

  func judge(_ parcel: Parcel) -> Verdict {
    if roster.isRevoked(parcel.author) { return .void }
    guard roster.isMember(parcel.author) else { return .cannotJudge }
    // A store with other limits is left out, and keeps the others from nothing.
    let isReached = parcel.stores.allSatisfy { store in
      let own = stores[store.have.store]
      return own.map { $0.policy != store.have.policy } == true
        || covers(store.above, of: store.have.store)
    }
    return timeKeeper.wait(for: parcel.clock) == nil && isReached ? .ready : .waits
  }
}
