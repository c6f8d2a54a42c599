internal import KithCrypto

/// The content of an object on a carrier, without records and change sets. For each store it has
/// the vectors that a reader must cover before, and covers afterwards (`Docs/Protocol/carriers.md`,
/// "Parcels").
///
/// It is a `Have` and the batches that answer one, as a session would bring them.
struct Parcel: Hashable, Sendable {
  struct Store: Hashable, Sendable {
    /// Its vector is what the reader covers afterwards.
    var have: StoreHave
    /// The vector that the reader must cover before.
    var above: [ChainID: UInt64]
    /// Whether all kept change sets are inside.
    var isEverything = false

    /// The covers of a reader that takes it in.
    var covers: [Cover] {
      have.vector.sorted { $0.key < $1.key }.compactMap { chain, through in
        let from = above[chain] ?? 0
        return from < through ? Cover(chain: chain, from: from, through: through) : nil
      }
    }
  }

  /// A large batch is put in parts, and counts when all were read. Only the last says what its reader
  /// covers then: until it is put, later writes may replace what earlier parts lack. The vector of an
  /// earlier part with everything serves to repair.
  struct Part: Hashable, Sendable {
    /// Random; the same in all parts.
    var group: UInt64 = 0
    var index = 0
    var isLast = true
  }

  let author: DeviceID
  /// The author's hybrid clock; of a parcel that was read, the latest publishing clock inside.
  var clock: HybridTime
  /// Ascending.
  var stores: [Store] = []
  var statements: [StatementGroup] = []
  var time: ToldTime?
  /// Of the records inside; nil: there are none.
  var rosterDigest: Digest256?
  var part = Part()
  /// Parcels whose content is in this one, ascending.
  var replaces: [ObjectName] = []
  /// Of a handover: the devices that can open its epoch.
  var recipients: [DeviceID] = []

  init(by author: DeviceID, at clock: HybridTime) {
    self.author = author
    self.clock = clock
  }

  /// The author's time and generation.
  var reading: HybridTime { time?.reading ?? clock }

  subscript(store: StoreIdentifier) -> Store? { stores.first { $0.have.store == store } }

  /// Whether it says more of a chain than was received. If the chain and the parcel are this device's
  /// own, its directory was restored or copied.
  func saysMore(of chain: ChainID, than received: (StoreIdentifier) -> UInt64) -> Bool {
    stores.contains { $0.have.vector[chain] ?? 0 > received($0.have.store) }
  }

  /// The statements inside.
  var said: [SaidName: Said] {
    var said: [SaidName: Said] = [:]
    for group in statements {
      for each in group.said {
        said[SaidName(store: group.extent.store, device: each.device)] = Said(
          age: each.age, extent: group.extent)
      }
    }
    return said
  }

  struct SaidName: Hashable {
    var store: StoreIdentifier
    var device: UInt64
  }

  struct Said {
    var age: StatementAge
    var extent: Extent

    static func later(_ first: Self, _ second: Self) -> Self {
      first.age < second.age ? second : first
    }
  }

  /// The parcel, and of its vectors only what its change sets and those of earlier parts can bring:
  /// like a cover, a sequence is believed up to a signed header. An earlier part gets the sequences
  /// of its headers.
  func bounded(by messages: [InboundMessage], after earlier: [Parcel]) -> Parcel {
    var headers: [StoreIdentifier: [ChainID: UInt64]] = [:]
    for store in earlier.lazy.flatMap(\.stores) {
      headers[store.have.store, default: [:]].merge(store.have.vector, uniquingKeysWith: max)
    }
    for message in messages {
      guard case .batch(let batch) = message.body else { continue }
      for case .sound(let changeSet) in batch.changeSets {
        let header = changeSet.header
        headers[batch.store, default: [:]][header.chain] = max(
          header.sequence, headers[batch.store]?[header.chain] ?? 0)
      }
    }
    var parcel = self
    for index in stores.indices {
      let (store, above) = (stores[index].have.store, stores[index].above)
      guard part.isLast else {
        parcel.stores[index].have.vector = headers[store] ?? [:]
        continue
      }
      for (chain, through) in stores[index].have.vector {
        let brought = max(above[chain] ?? 0, headers[store]?[chain] ?? 0)
        parcel.stores[index].have.vector[chain] = brought > 0 ? min(through, brought) : nil
      }
    }
    return parcel
  }
}

extension Parcel {
  /// Encodes it with further messages: records and batches.
  func encoded(with messages: [[UInt8]] = []) -> [UInt8] {
    var wire = WireParcel()
    wire.device = .init(author.bytes)
    wire.clock = clock.rawValue
    wire.carried = stores.map { store in
      var carried = WireCarried()
      carried.store = store.have.store.rawValue
      carried.above = store.above.sorted { $0.key < $1.key }
        .map { WireVectorEntry($0.key, $0.value) }
      carried.everything = store.isEverything
      return carried
    }
    if let rosterDigest { wire.rosterDigest = .init(rosterDigest.bytes) }
    wire.group = .init(part.group.bigEndianBytes)
    wire.part = UInt32(part.index)
    wire.parts = part.isLast ? UInt32(part.index) + 1 : 0
    wire.replaces = .init(replaces.flatMap(\.bytes))
    wire.recipients = recipients.map { .init($0.bytes) }
    wire.messages = (haves + messages).map { .init($0) }
    return wire.encodedBytes()
  }

  private var haves: [[UInt8]] {
    let time = time ?? ToldTime(reading: clock, isSynchronised: false)
    let have = Have(
      number: 0, isWhole: true, listsAll: false, stores: stores.map(\.have), time: time)
    return have.messages()
      + (statements.isEmpty ? [] : Have.messages(telling: statements, by: nil, time: time))
  }

  /// Decodes it, with the messages that are no `Have`. Nil if malformed.
  static func decode(
    _ bytes: [UInt8], account: AccountID, concurrently: InboundMessage.Repeater? = nil
  ) -> (parcel: Parcel, content: [InboundMessage])? {
    guard bytes.count <= Limits.parcelBytes, MessageOutline.parcel.permits(bytes),
      let wire = try? WireParcel(serializedBytes: bytes),
      let author = try? DeviceID(wire.device)
    else { return nil }
    var parcel = Parcel(by: author, at: HybridTime(rawValue: wire.clock))
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
        parcel.statements += have.statements.filter { !$0.said.isEmpty }
        parcel.time = have.time
      case .records, .batch: content.append(message)
      case .addresses, .done: return nil
      }
    }
    guard haves.count == wire.carried.count, haves.isStrictlyAscending(by: \.store) else {
      return nil
    }
    for (have, carried) in zip(haves, wire.carried) {
      guard have.store.rawValue == carried.store, let above = [ChainID: UInt64](carried.above)
      else { return nil }
      parcel.stores.append(Store(have: have, above: above, isEverything: carried.everything))
    }
    guard parcel.takeRest(of: wire) else { return nil }
    return (parcel, content)
  }

  /// Returns false if malformed.
  private mutating func takeRest(of wire: WireParcel) -> Bool {
    if !wire.rosterDigest.isEmpty {
      guard let digest = try? Digest256(wire.rosterDigest) else { return false }
      rosterDigest = digest
    }
    guard wire.group.count == 8, wire.part < Limits.parcelParts,
      [0, wire.part + 1].contains(wire.parts),
      wire.replaces.count.isMultiple(of: 16)
    else { return false }
    part = Part(
      group: wire.group.reduce(0) { $0 << 8 | UInt64($1) }, index: Int(wire.part),
      isLast: wire.parts > 0)
    let names = [UInt8](wire.replaces)
    for start in stride(from: 0, to: names.count, by: 16) {
      guard let digest = try? Digest128(names[start..<start + 16]) else { return false }
      replaces.append(ObjectName(digest))
    }
    for recipient in wire.recipients {
      guard let device = try? DeviceID(recipient) else { return false }
      recipients.append(device)
    }
    return replaces.isStrictlyAscending(by: \.self)
      && recipients.isStrictlyAscending(by: \.self)
  }
}

extension MessageOutline {
  static let parcel = MessageOutline([
    Field(
      number: 3, limit: Limits.stores,
      fields: [Field(number: 2, limit: Limits.elementsPerMessage, fewestBytes: 34)]),
    Field(number: 9, limit: MembershipLimits.certificates, fewestBytes: 32),
    Field(number: 10, limit: Limits.parcelMessages),
  ])

  static let handover = MessageOutline([
    Field(number: 2, limit: MembershipLimits.certificates, fewestBytes: 80)
  ])
}
