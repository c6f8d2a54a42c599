internal import KithCrypto

/// A device that makes objects for a carrier, as it is now.
struct ParcelAuthor {
  let account: AccountID
  let keys: DeviceKeys
  let reader: CarrierReader
  let logs: [StoreIdentifier: ChangeSetLog]
  /// Bytes of change sets after which a parcel ends.
  let partBytes: Int
}

/// The objects that a device puts in one turn: parcels, and handovers to the newest epoch. Each is made
/// from the data that is stored then.
struct Deposit: Sendable {
  /// One store's data to put.
  struct Share: Hashable, Sendable {
    var store: StoreIdentifier
    var above: [ChainID: UInt64]
    var isEverything: Bool
    var policy: Policy
  }

  enum Next {
    case put(OutboundObject)
    /// All was put.
    case done
    /// The rest would be another answer: the epoch or the limits changed, or entries are withheld.
    case stale
  }

  private let epoch: EpochID?
  /// The shares of the parcels that are left, the next last. Only a parcel of one share has parts.
  private var parcels: [[Share]] = []
  /// The rest of the share that is put in parts.
  private var answer: Answer?
  private var part = Parcel.Part()
  /// Only the last parcel holds these.
  private var replaces: [ObjectName] = []
  private var statements: [StatementGroup] = []
  private var hasRecords = false
  /// Epochs from which handovers are left to put.
  private var handovers: [EpochKeys]
  /// The object under way, and the note of it for the time when it is stored.
  private var underWay: (object: OutboundObject, known: KnownObject)?

  init(handovers: [EpochKeys], under epoch: EpochID?) {
    self.handovers = handovers
    self.epoch = epoch
  }

  /// One parcel for all shares, or one for each if they are large.
  mutating func put(_ plan: Carrier.Plan, _ said: [StatementGroup], _ author: ParcelAuthor) {
    let bytes = plan.shares.reduce(0) { sum, share in
      let changeSets = author.logs[share.store]?.changeSets(above: share.above) ?? []
      return sum + changeSets.reduce(0) { $0 + $1.weight }
    }
    parcels = bytes <= author.partBytes ? [plan.shares] : plan.shares.reversed().map { [$0] }
    replaces = plan.replaces
    statements = said
    hasRecords = plan.needsRecords
  }

  /// Makes the next object.
  mutating func next(
    by author: ParcelAuthor, clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> Next {
    let reader = author.reader
    guard let newest = reader.writing, newest.id == epoch,
      parcels.joined().allSatisfy({ reader.stores[$0.store]?.policy == $0.policy })
    else { return .stale }
    let made: (object: OutboundObject, known: KnownObject)
    if let shares = parcels.last {
      made = nextPart(of: shares, by: author, under: newest, clock: &timeKeeper, entropy: &entropy)
    } else if let older = handovers.popLast() {
      made = Self.handover(
        from: older, to: newest, by: author, clock: &timeKeeper, entropy: &entropy)
    } else {
      return .done
    }
    underWay = made
    return .put(made.object)
  }

  /// The object under way was put: returns the note of it. Nil if none of that name was under way.
  mutating func stored(_ name: ObjectName, bytes: Int) -> KnownObject? {
    guard case (let object, var known)? = underWay, object.name == name else { return nil }
    underWay = nil
    known.bytes = bytes
    return known
  }

  // MARK: Objects

  /// The next part of a parcel; mostly it is the only one.
  private mutating func nextPart(
    of shares: [Share], by author: ParcelAuthor, under epoch: EpochKeys,
    clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> (OutboundObject, KnownObject) {
    if part.index == 0 { part.group = entropy.drawNumber() }
    let mayContinue = shares.count == 1 && part.index + 1 < Limits.parcelParts
    var parcel = Parcel(by: author.keys.id, at: timeKeeper.tick())
    parcel.part = part
    var batches: [StoredBatch] = []
    for share in shares {
      guard let log = author.logs[share.store], let own = author.reader.stores[share.store] else {
        continue
      }
      var answer = answer ?? Answer(store: share.store, number: 0, above: share.above)
      answer.isEmpty = share.above == log.vector
      var batch = answer.nextPiece(of: log, bytes: mayContinue ? author.partBytes : .max)
      parcel.part.isLast = !batch.isUnfinished
      self.answer = batch.isUnfinished ? answer : nil
      (batch.isUnfinished, batch.covers) = (false, [])
      batches.append(batch)
      var have = StoreHave(
        store: share.store, vector: log.vector, digest: own.digest, policy: own.policy,
        isBeyond: log.holdsUncovered)
      (have.horizon, have.isBelow) = (own.horizon.clock, own.horizon.isBelow)
      // An earlier part tells what it repairs.
      if !parcel.part.isLast, !share.isEverything { (have.vector, have.digest) = ([:], nil) }
      parcel.stores.append(
        Parcel.Store(have: have, above: share.above, isEverything: share.isEverything))
    }
    parcel.time = timeKeeper.told(at: timeKeeper.host)
    part.index += 1
    if parcel.part.isLast {
      part = Parcel.Part()
      parcels.removeLast()
    }
    var records: [[UInt8]] = []
    if parcels.isEmpty {
      parcel.replaces = replaces
      parcel.statements = statements
      if hasRecords {
        parcel.rosterDigest = author.reader.rosterDigest
        records = author.records
      }
    }
    return author.outbound(
      parcel, .parcel, records, batches, under: epoch, named: epoch, entropy: &entropy)
  }

  private static func handover(
    from older: EpochKeys, to epoch: EpochKeys, by author: ParcelAuthor,
    clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> (OutboundObject, KnownObject) {
    var parcel = Parcel(by: author.keys.id, at: timeKeeper.tick())
    parcel.time = timeKeeper.told(at: timeKeeper.host)
    parcel.rosterDigest = author.reader.rosterDigest
    var boxes: [[UInt8]] = []
    for member in author.reader.roster.sortedMembers {
      guard let box = epoch.sealed(to: member.boxKey, entropy: &entropy) else { continue }
      boxes.append(box)
      parcel.recipients.append(member.device)
    }
    var (object, known) = author.outbound(
      parcel, .handover, author.records, [], under: epoch, named: older, entropy: &entropy)
    object.handover = (older, boxes, entropy.draw())
    known.state = .handover(parcel, to: epoch.id)
    return (object, known)
  }
}

extension ParcelAuthor {
  fileprivate var records: [[UInt8]] {
    reader.roster.records.sorted(by: Record.isSentBefore).messages()
  }

  fileprivate func outbound(
    _ parcel: Parcel, _ kind: ObjectName.Kind, _ records: [[UInt8]], _ batches: [StoredBatch],
    under epoch: EpochKeys, named naming: EpochKeys, entropy: inout some Entropy
  ) -> (OutboundObject, KnownObject) {
    let object = OutboundObject(
      name: ObjectName(kind, of: naming, entropy: &entropy), parcel: parcel, records: records,
      batches: batches, account: account, epoch: epoch, keys: keys, nonce: entropy.draw())
    let known = KnownObject(
      state: .counted(parcel), epoch: naming.id, bytes: 0,
      firstSeen: reader.now.wallMilliseconds, isSeen: false)
    return (object, known)
  }
}

extension Entropy {
  mutating func drawNumber() -> UInt64 {
    draw(Digest128.self).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
