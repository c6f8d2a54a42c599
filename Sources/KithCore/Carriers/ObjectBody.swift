internal import KithCrypto

/// The signed content of an object on a carrier, without records and change sets
/// (`Docs/Protocol/carriers.md`, "Bodies").
///
/// It is a `Have` and the batches that answer one, as a session would bring them.
struct ObjectBody: Hashable, Sendable {
  /// The data of one store.
  struct Part: Hashable, Sendable {
    /// Its vector, `through` in the protocol, is what the reader covers afterwards.
    var have: StoreHave
    /// The vector that the reader must cover before. Empty: all kept change sets are inside.
    var above: [ChainID: UInt64]

    var store: StoreIdentifier { have.store }
    var isFromNothing: Bool { above.isEmpty }

    /// The covers of a reader that takes it in.
    var covers: [Cover] {
      have.vector.sorted { $0.key < $1.key }.compactMap { chain, through in
        let from = above[chain] ?? 0
        return from < through ? Cover(chain: chain, from: from, through: through) : nil
      }
    }
  }

  /// All devices order objects alike. So no two of them can each delete what makes the other's
  /// unneeded.
  struct Rank: Comparable {
    var level: UInt8
    var clock: HybridTime
    var author: DeviceID
    var name: ObjectName

    static func < (left: Self, right: Self) -> Bool {
      (left.level, left.clock, left.author, left.name)
        < (right.level, right.clock, right.author, right.name)
    }
  }

  let author: DeviceID
  /// The author's hybrid clock. It only orders objects.
  var clock: HybridTime
  /// The epoch under which it is sealed; the encoding lacks it.
  let epoch: EpochID
  var level: UInt8 = 0
  /// Ascending by store.
  var parts: [Part] = []
  var words: [WordGroup] = []
  var time: ClockReading?
  /// The digest of the roster whose records are inside; nil: there are none.
  var rosterDigest: Digest256?
  /// The objects with the rest of its change sets, ascending.
  var pieces: [ObjectName] = []
  /// Whether it is such an object itself.
  var isPiece = false

  init(by author: DeviceID, at clock: HybridTime, under epoch: EpochID) {
    self.author = author
    self.clock = clock
    self.epoch = epoch
  }

  /// The author's time and generation.
  var reading: HybridTime { time?.reading ?? clock }

  func rank(_ name: ObjectName) -> Rank {
    Rank(level: level, clock: clock, author: author, name: name)
  }

  /// More bytes than it takes without change sets and records.
  var sizeBound: Int {
    parts.reduce(256) { $0 + $1.have.sizeBound + 64 * $1.above.count }
      + words.reduce(0) { $0 + $1.sizeBound } + ObjectName.byteCount * pieces.count
  }

  /// Whether it says more of a chain than was received. If the chain and the object are this device's
  /// own, its directory was restored or copied.
  func saysMore(of chain: ChainID, than received: (StoreIdentifier) -> UInt64) -> Bool {
    parts.contains { $0.have.vector[chain] ?? 0 > received($0.store) }
  }

  /// The versions of the words inside, by the devices' short names.
  var wordVersions: [UInt64: Word.Version] {
    Dictionary(
      words.lazy.flatMap(\.said).map { ($0.device, $0.version) }, uniquingKeysWith: max)
  }

  /// The body, and of its vectors only what its change sets and those of its pieces can bring: like
  /// a cover, a sequence is believed up to a signed header. A piece gets the sequences of its headers.
  func bounded(by messages: [InboundMessage], with pieces: [ObjectBody]) -> ObjectBody {
    var headers: [StoreIdentifier: [ChainID: UInt64]] = [:]
    for part in pieces.lazy.flatMap(\.parts) {
      headers[part.store, default: [:]].merge(part.have.vector, uniquingKeysWith: max)
    }
    for message in messages {
      guard case .batch(let batch) = message.body else { continue }
      for case .sound(let changeSet) in batch.changeSets {
        let header = changeSet.header
        headers[batch.store, default: [:]][header.chain] = max(
          header.sequence, headers[batch.store]?[header.chain] ?? 0)
      }
    }
    var body = self
    for index in parts.indices {
      let (store, above) = (parts[index].store, parts[index].above)
      guard !isPiece else {
        body.parts[index].have.vector = headers[store] ?? [:]
        continue
      }
      for (chain, through) in parts[index].have.vector {
        let brought = max(above[chain] ?? 0, headers[store]?[chain] ?? 0)
        body.parts[index].have.vector[chain] = brought > 0 ? min(through, brought) : nil
      }
    }
    return body
  }
}

extension ObjectBody {
  /// Encodes it with further messages: records and batches.
  func encoded(with messages: [[UInt8]] = []) -> [UInt8] {
    var wire = WireObjectBody()
    wire.device = .init(author.bytes)
    wire.clock = clock.rawValue
    wire.level = UInt32(level)
    wire.parts = parts.map { part in
      var wire = WireObjectPart()
      wire.store = part.store.rawValue
      wire.above = part.above.sorted { $0.key < $1.key }.map { WireVectorEntry($0.key, $0.value) }
      return wire
    }
    if let rosterDigest { wire.rosterDigest = .init(rosterDigest.bytes) }
    wire.pieces = .init(pieces.flatMap(\.bytes))
    wire.piece = isPiece
    wire.messages = (haves + messages).map { .init($0) }
    return wire.encodedBytes()
  }

  private var haves: [[UInt8]] {
    let time = time ?? ClockReading(reading: clock, isSynchronised: false)
    let have = Have(
      number: 0, isWhole: true, listsAll: false, stores: parts.map(\.have), time: time)
    return have.messages()
      + (words.isEmpty ? [] : Have.messages(of: words, time: time))
  }

  /// Decodes it, with the messages that are no `Have`. Nil if malformed.
  static func decode(
    _ bytes: [UInt8], account: AccountID, epoch: EpochID,
    concurrently: InboundMessage.Repeater? = nil
  ) -> (body: ObjectBody, content: [InboundMessage])? {
    guard bytes.count <= Limits.objectBytes, MessageOutline.objectBody.permits(bytes),
      let wire = try? WireObjectBody(serializedBytes: bytes),
      let author = try? DeviceID(wire.device), wire.level <= Limits.objectLevels
    else { return nil }
    var body = ObjectBody(by: author, at: HybridTime(rawValue: wire.clock), under: epoch)
    body.level = UInt8(wire.level)
    body.isPiece = wire.piece
    var content: [InboundMessage] = []
    var haves: [StoreHave] = []
    for message in wire.messages {
      guard
        let message = InboundMessage(
          decoding: [UInt8](message), account: account, concurrently: concurrently)
      else { return nil }
      switch message.body {
      case .have(let have):
        haves += have.stores
        body.words += have.words
        body.time = have.time
      case .records, .batch: content.append(message)
      case .addresses, .done: return nil
      }
    }
    guard haves.count == wire.parts.count, haves.isStrictlyAscending(by: \.store) else {
      return nil
    }
    for (have, part) in zip(haves, wire.parts) {
      guard have.store.rawValue == part.store, let above = [ChainID: UInt64](part.above)
      else { return nil }
      body.parts.append(Part(have: have, above: above))
    }
    guard body.decodeRest(of: wire) else { return nil }
    return (body, content)
  }

  /// Returns false if malformed.
  private mutating func decodeRest(of wire: WireObjectBody) -> Bool {
    if !wire.rosterDigest.isEmpty {
      guard let digest = try? Digest256(wire.rosterDigest) else { return false }
      rosterDigest = digest
    }
    let size = ObjectName.byteCount
    guard wire.pieces.count.isMultiple(of: size), wire.pieces.count <= size * Limits.objectPieces
    else { return false }
    let names = [UInt8](wire.pieces)
    for start in stride(from: 0, to: names.count, by: size) {
      guard let digest = try? Digest128(names[start..<start + size]) else { return false }
      pieces.append(ObjectName(digest))
    }
    return pieces.isStrictlyAscending(by: \.self) && (!isPiece || pieces.isEmpty)
  }
}

extension MessageOutline {
  static let objectBody = MessageOutline([
    Field(
      number: 4, limit: Limits.stores,
      fields: [Field(number: 2, limit: Limits.elementsPerMessage, fewestBytes: 34)]),
    Field(number: 8, limit: Limits.objectMessages),
  ])
}
