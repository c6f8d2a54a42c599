internal import KithCrypto

/// A device that makes objects for a carrier, as it is now.
struct ObjectAuthor {
  let account: AccountID
  let carrierKeys: CarrierKeys
  let keys: DeviceKeys
  let reader: CarrierReader
  let logs: [StoreIdentifier: ChangeSetLog]
  /// Bytes of change sets after which another object begins.
  let objectBytes: Int
  /// The bytes of an object of level 0.
  let levelBytes: Int

  /// About how many bytes a share's change sets take.
  func bytes(of share: Deposit.Share) -> Int {
    guard let log = logs[share.store], share.above != log.vector else { return 0 }
    return log.bytes(above: share.above)
  }

  /// The bytes of a share's change sets with overhead, by which it is put in pieces.
  fileprivate func weight(of share: Deposit.Share) -> Int {
    guard let log = logs[share.store], share.above != log.vector else { return 0 }
    return log.changeSets(above: share.above).reduce(0) { $0 + $1.weight }
  }

  fileprivate var records: [[UInt8]] {
    reader.roster.records.sorted(by: Record.isSentBefore).messages()
  }

  /// The bytes of the records and boxes.
  var recordBytes: Int {
    reader.roster.records.reduce(0) { $0 + $1.encoded.count + 4 }
      + (reader.roster.sortedMembers.count + 1) * SealedSecret.boxBytes
  }
}

/// The objects that a device puts in one turn. Each is made from the data that is stored then.
struct Deposit: Sendable {
  /// One store's data to put.
  struct Share: Hashable, Sendable {
    var store: StoreIdentifier
    var above: [ChainID: UInt64]
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
  private let level: UInt8
  /// The shares of the objects that are left, the next last. Only an object of one share has pieces.
  private var objects: [[Share]] = []
  /// The rest of a share that is too large for one object; nil: none is begun.
  private var answer: Answer?
  /// The names of that share's pieces so far.
  private var pieces: [ObjectName] = []
  /// Only the last object has these.
  private let words: [WordGroup]
  private let hasRecords: Bool
  /// The object being uploaded, and the note of it to keep once that succeeds.
  private var underWay: (name: ObjectName, body: ObjectBody)?

  /// As many shares go in an object as its bytes allow, and the records in the last. Without a plan
  /// there is nothing to put.
  init(_ plan: CarrierPlan?, _ author: ObjectAuthor) {
    epoch = author.reader.epoch?.id
    level = plan?.level ?? 0
    words = WordGroup.groups(of: plan?.words ?? [])
    hasRecords = plan?.hasRecords == true
    guard let plan else { return }
    var groups: [[Share]] = []
    var bytes = 0
    func begin(_ size: Int) -> Bool { groups.isEmpty || bytes + size > author.objectBytes }
    for share in plan.shares {
      let size = author.weight(of: share)
      if begin(size) {
        groups.append([])
        bytes = 0
      }
      groups[groups.count - 1].append(share)
      bytes += size
    }
    if begin(hasRecords ? author.recordBytes : 0) { groups.append([]) }
    objects = groups.reversed()
  }

  /// Makes the next object.
  mutating func next(
    by author: ObjectAuthor, clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> Next {
    let reader = author.reader
    guard let newest = reader.writing, newest.id == epoch,
      objects.joined().allSatisfy({ reader.stores[$0.store]?.policy == $0.policy })
    else { return .stale }
    guard let shares = objects.last else { return .done }
    let name = ObjectName(of: author.carrierKeys, entropy: &entropy)
    var body = ObjectBody(by: author.keys.id, at: timeKeeper.tick(), under: newest.id)
    body.level = level
    let batches = nextBatches(of: shares, into: &body, by: author)
    body.time = timeKeeper.clockReading(at: timeKeeper.host)
    if body.isPiece {
      pieces.append(name)
    } else {
      body.pieces = pieces.sorted()
      pieces = []
      objects.removeLast()
    }
    var (records, boxes): ([[UInt8]], [[UInt8]]) = ([], [])
    if objects.isEmpty {
      body.words = words
      if hasRecords {
        body.rosterDigest = reader.roster.digest
        records = author.records
        let recipients = reader.roster.sortedMembers.map(\.boxKey) + [author.carrierKeys.recovery]
        boxes = recipients.compactMap { newest.sealed(to: $0, entropy: &entropy) }
      }
    }
    // Notes only the vector of the piece's own change sets, as its readers do.
    var note = body
    if body.isPiece, let batch = batches.first { note.parts[0].have.vector = batch.vector }
    underWay = (name, note)
    return .put(
      OutboundObject(
        body: body, records: records, batches: batches,
        seal: SealedObject.Seal(
          name: name, account: author.account, carrierKeys: author.carrierKeys,
          keys: author.keys, epoch: newest, boxes: boxes,
          nonces: (entropy.draw(), entropy.draw()))))
  }

  /// The change sets of the next object; mostly it is the only one.
  private mutating func nextBatches(
    of shares: [Share], into body: inout ObjectBody, by author: ObjectAuthor
  ) -> [StoredBatch] {
    let mayContinue = shares.count == 1 && pieces.count < Limits.objectPieces
    return shares.compactMap { share in
      guard let log = author.logs[share.store], let own = author.reader.stores[share.store] else {
        return nil
      }
      var answer = answer ?? Answer(store: share.store, number: 0, above: share.above)
      answer.isEmpty = share.above == log.vector
      var batch = answer.nextPiece(of: log, bytes: mayContinue ? author.objectBytes : .max)
      body.isPiece = batch.isUnfinished
      self.answer = batch.isUnfinished ? answer : nil
      (batch.isUnfinished, batch.covers) = (false, [])
      var have = StoreHave(
        store: share.store, vector: log.vector, digest: own.digest, policy: own.policy,
        isBeyond: log.holdsUncovered)
      (have.horizon, have.isBelow) = (own.horizon.clock, own.horizon.isBelow)
      body.parts.append(ObjectBody.Part(have: have, above: share.above))
      return batch
    }
  }

  /// The pieces that no object names if the rest is not put. The object under way may be put or not.
  var loosePieces: [ObjectName] { pieces + (underWay?.body.pieces ?? []) }

  /// The object under way was put: returns the note of it. Nil if none of that name was under way.
  mutating func stored(_ name: ObjectName, bytes: Int) -> KnownObject? {
    guard let (expected, body) = underWay, expected == name else { return nil }
    underWay = nil
    return KnownObject(state: .applied(body, without: []), bytes: bytes)
  }
}

/// An object to put, whose change sets are read from storage when it is made.
///
/// Like a ``StoredBatch``, its content is the storage's at its position among the effects.
package struct OutboundObject: Sendable {
  var body: ObjectBody
  /// Encoded messages of records.
  let records: [[UInt8]]
  var batches: [StoredBatch]
  var seal: SealedObject.Seal

  package var name: ObjectName { seal.name }

  /// About how many bytes it takes.
  var byteCount: Int { batches.reduce(Limits.smallestObjectBytes) { $0 + $1.byteCount } }

  /// Makes the object. Nil if storage lacks something of it: the object would cover entries that it
  /// lacks.
  ///
  /// - Complexity: O(*n*) in the bytes.
  package func sealed(from storage: any ReplicaStorage) throws(StorageError) -> [UInt8]? {
    var messages = records
    for batch in batches {
      let missing = try batch.forEachMessage(from: storage) { messages.append($0) }
      guard missing == 0 else { return nil }
    }
    return SealedObject.seal(body.encoded(with: messages), seal)
  }
}
