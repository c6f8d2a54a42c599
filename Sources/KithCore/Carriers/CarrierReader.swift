internal import KithCrypto

/// This device's state, with which a carrier's objects are compared.
struct CarrierReader {
  struct Own {
    var vector: [ChainID: UInt64]
    /// Nil: it is not needed.
    var digest: Digest256?
    var horizon = Horizon()
    var policy: Policy
    /// Authors whose chains this device refuses to keep.
    var refused: Set<DeviceID>
    /// Members that are known to be below their horizon now.
    var below: Set<DeviceID> = []

    /// Whether a part has this vector, digest and policy.
    func matches(_ part: ObjectBody.Part) -> Bool {
      digest != nil && part.have.digest == digest && part.have.vector == vector
        && part.have.policy == policy
    }
  }

  let device: DeviceID
  var stores: [StoreIdentifier: Own]
  let roster: Roster
  /// The newest epoch; nil: none is open.
  let epoch: EpochKeys?
  let timeKeeper: TimeKeeper
  /// Whether this device withholds entries. An object's vector would then cover entries that the
  /// object lacks.
  let isWithholding: Bool

  var now: Instant { timeKeeper.now }

  /// The epoch that objects are put under now; nil: none may be put.
  var writing: EpochKeys? { isWithholding ? nil : epoch }

  /// A digest of the roster, the policies and the refused authors: the conditions, besides an
  /// object's content, on which it depends whether all of it can be applied.
  var conditions: Digest256 {
    var hasher = Blake2b.Hasher()
    hasher.update(roster.digest)
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
  /// are ignored in all comparisons.
  func covers(_ vector: [ChainID: UInt64], of store: StoreIdentifier) -> Bool {
    contains(vector, in: stores[store]?.vector ?? [:], of: store)
  }

  func contains(
    _ part: [ChainID: UInt64], in whole: [ChainID: UInt64], of store: StoreIdentifier
  ) -> Bool {
    part.allSatisfy { chain, sequence in
      sequence <= whole[chain] ?? 0 || isIgnored(chain, in: store)
    }
  }

  private func isIgnored(_ chain: ChainID, in store: StoreIdentifier) -> Bool {
    roster.isRevoked(chain.device) || stores[store]?.refused.contains(chain.device) == true
  }

  /// This reader without refused authors, so that comparisons include their chains: other devices
  /// may keep those.
  var keepingAll: CarrierReader {
    var reader = self
    for store in stores.keys { reader.stores[store]?.refused = [] }
    return reader
  }

  /// Whether a vector covers all that this device covers of a store, also of revoked and refused
  /// devices.
  func isWithin(_ vector: [ChainID: UInt64], _ store: StoreIdentifier) -> Bool {
    (stores[store]?.vector ?? [:]).allSatisfy { $0.value <= vector[$0.key] ?? 0 }
  }

  /// Whether a part of an object that was taken in whole counts: its author had the same limits, and
  /// knew of all revocations. Otherwise it may lack entries that a revoked device's had replaced.
  func counts(_ part: ObjectBody.Part) -> Bool {
    stores[part.store]?.policy == part.have.policy && !holdsRevoked(part)
  }

  private func holdsRevoked(_ part: ObjectBody.Part) -> Bool {
    part.have.vector.keys.contains { roster.isRevoked($0.device) }
  }

  /// Whether a part has the same vector as this device and another digest: one of them lacks
  /// something that it covers. Nobody lacks anything of a store without change sets.
  func isOdd(_ part: ObjectBody.Part) -> Bool {
    isRepair(part) && !part.have.vector.isEmpty && part.have.vector == stores[part.store]?.vector
  }

  /// Whether a part's author covered all that this device covers, and has another state. So what
  /// it kept is no older than this device's state, which may lack some of it.
  func isRepair(_ part: ObjectBody.Part) -> Bool {
    guard let own = stores[part.store], let digest = part.have.digest, digest != own.digest,
      !holdsRevoked(part)
    else { return false }
    return contains(own.vector, in: part.have.vector, of: part.store)
  }

  // MARK: Applying

  enum OnObject: Equatable {
    case ready
    /// Its publishing clock is ahead of the time: it is judged again later.
    case waits
    /// Its author is unknown.
    case foreign
    /// Its author is revoked, so no part of it counts.
    case void
  }

  func judge(_ body: ObjectBody, published: HybridTime) -> OnObject {
    if roster.isRevoked(body.author) { return .void }
    guard roster.isMember(body.author) else { return .foreign }
    return timeKeeper.wait(for: published) == nil ? .ready : .waits
  }

  /// Whether a part can be taken in, or left out, now. Otherwise it waits until this device covers
  /// what it is above, on all of the store's chains.
  func isReady(_ part: ObjectBody.Part) -> Bool {
    hasOtherLimits(part) != nil || covers(part.above, of: part.store)
  }

  /// This device's limits, if a part's author has others: the part is left out.
  func hasOtherLimits(_ part: ObjectBody.Part) -> Policy? {
    guard let own = stores[part.store], own.policy != part.have.policy else { return nil }
    return own.policy
  }

  /// The data of a part that is ready, nil if its messages are in disorder. `bounds` limit it;
  /// `isComplete`: all pieces of the object were taken in whole.
  func batch(
    of part: ObjectBody.Part, in body: ObjectBody, _ messages: [InboundMessage],
    within bounds: BatchBounds, isComplete: Bool = true
  ) -> (batch: Batch, taint: Taint)? {
    var assembly = BatchAssembly()
    var assembled = (batch: Batch(store: part.store), taint: Taint())
    assembling: for message in messages {
      guard case .batch(let batch) = message.body, batch.store == part.store else { continue }
      switch assembly.add(batch, size: message.size, within: bounds) {
      case .more: continue
      case .whole(let batch, let taint):
        assembled = (batch, taint)
        break assembling
      case .unwanted, .violation: return nil
      }
    }
    var batch = assembled.batch
    batch.isEverything = part.isFromNothing && isRepair(part)
    batch.isUnfinished = false
    batch.answers = 0
    batch.covers = body.isPiece || !isComplete || holdsRevoked(part) ? [] : part.covers
    (batch.horizon, batch.isFromBelow) = (part.have.horizon, part.have.isBelow)
    if !batch.isEverything {
      // Objects may be old: nothing that is covered is taken in again.
      let vector = stores[part.store]?.vector ?? [:]
      batch.changeSets.removeAll { $0.header.sequence <= vector[$0.header.chain] ?? 0 }
    }
    return (batch, assembled.taint)
  }
}
