package import KithCrypto

/// What a peer has of one store.
package struct StoreHave: Hashable, Sendable {
  package var store: StoreIdentifier
  package var vector: [ChainID: UInt64]
  /// The state's digest; nil unless the vector is whole.
  package var digest: Digest256?
  package var policy: Policy
  /// Whether the digest is of more than the vector covers.
  package var isBeyond: Bool
  /// Whether no answer of the session was applied yet, so that one is wanted even if it is empty.
  package var isAwaited: Bool
  /// Whether something of the last answer cannot be judged yet, so that records are wanted again.
  package var isUnjudged = false
  /// The digest of the statements held of the store; nil where nothing is said of them.
  package var statements: Digest256?

  package init(
    store: StoreIdentifier, vector: [ChainID: UInt64], digest: Digest256?, policy: Policy,
    isBeyond: Bool = false, isAwaited: Bool = false, statements: Digest256? = nil
  ) {
    self.store = store
    self.vector = vector
    self.digest = digest
    self.policy = policy
    self.isBeyond = isBeyond
    self.isAwaited = isAwaited
    self.statements = statements
  }
}

/// What a peer has (`Docs/Protocol.md`, "Sessions").
package struct Have: Hashable, Sendable {
  /// Counts the ones that ask for a batch; 0 asks for nothing.
  package var number: UInt64
  /// Whether vectors are whole; otherwise they hold only what changed.
  package var isWhole: Bool
  /// Whether every store of the peer is listed.
  package var listsAll: Bool
  package var stores: [StoreHave]
  /// What devices say that they cover, of the peer's own or passed on.
  package var statements: [Statement]
  /// What the peer tells of the time; nil: nothing.
  package var time: ToldTime?

  package init(
    number: UInt64, isWhole: Bool, listsAll: Bool, stores: [StoreHave],
    statements: [Statement] = [], time: ToldTime? = nil
  ) {
    self.number = number
    self.isWhole = isWhole
    self.listsAll = listsAll
    self.stores = stores
    self.statements = statements
    self.time = time
  }

  /// One that tells the time, and nothing else.
  init(telling time: ToldTime) {
    self.init(number: 0, isWhole: false, listsAll: false, stores: [], time: time)
  }

  /// Nil where the message is malformed; so it is where a statement does not bear the signature of the
  /// device that it names, or a device says two things of one store.
  init?(_ wire: WireHave, account: AccountID, concurrently: InboundMessage.Repeater?) {
    guard wire.stores.count <= Limits.stores,
      wire.statements.count <= Limits.statementsPerMessage
    else { return nil }
    self.init(
      number: wire.number, isWhole: wire.whole, listsAll: wire.all, stores: [],
      time: wire.clock == 0
        ? nil
        : ToldTime(
          reading: HybridTime(rawValue: wire.clock), isSynchronised: wire.synchronised))
    for store in wire.stores {
      guard let store = StoreHave(store) else { return nil }
      stores.append(store)
    }
    for statement in wire.statements {
      guard let statement = Statement(statement) else { return nil }
      statements.append(statement)
    }
    let names = statements.map { StatementName(store: $0.store, device: $0.device) }
    guard Set(names).count == names.count else { return nil }
    let decoded = statements
    let signed = values(decoded.count, by: 16, with: concurrently) {
      decoded[$0].isSigned(in: account)
    }
    guard signed.allSatisfy(\.self) else { return nil }
    // Each is answered with a whole store, so none may be listed twice.
    guard stores.isStrictlyAscending(by: \.store) else { return nil }
  }

  /// The messages that carry it: one, but where the vectors of many stores take more than
  /// ``Limits/haveMessageBytes``. Then each says of some stores what the whole would, and the last
  /// only which stores there are.
  package func messages() -> [[UInt8]] {
    var parts: [[StoreHave]] = []
    var bytes = 0
    for store in stores {
      if parts.isEmpty || bytes + store.sizeBound > Limits.haveMessageBytes {
        parts.append([])
        bytes = 0
      }
      parts[parts.count - 1].append(store)
      bytes += store.sizeBound
    }
    guard parts.count > 1 else { return [message()] }
    var haves = parts.map { part in
      Have(
        number: number, isWhole: isWhole, listsAll: false, stores: part, time: time)
    }
    if listsAll {
      haves.append(
        Have(
          number: 0, isWhole: false, listsAll: true, stores: stores.map(\.withoutVector),
          time: time))
    }
    return haves.map { $0.message() }
  }

  /// Messages that pass statements on and say nothing else.
  static func messages(passingOn statements: [Statement], time: ToldTime) -> [[UInt8]] {
    var rest = statements[...]
    var messages: [[UInt8]] = []
    while !rest.isEmpty {
      let part = rest.prefix(Limits.statementsPerMessage)
      rest = rest.dropFirst(part.count)
      messages.append(
        Have(
          number: 0, isWhole: false, listsAll: false, stores: [], statements: Array(part),
          time: time
        ).message())
    }
    return messages
  }

  private func message() -> [UInt8] {
    var message = WireMessage()
    message.have.number = number
    message.have.whole = isWhole
    message.have.all = listsAll
    message.have.stores = stores.map(\.wire)
    message.have.statements = statements.map(\.wire)
    message.have.clock = time?.reading.rawValue ?? 0
    message.have.synchronised = time?.isSynchronised ?? false
    return message.encodedBytes()
  }
}

extension StoreHave {
  /// More bytes than it ever takes in a message.
  fileprivate var sizeBound: Int { 512 + 64 * vector.count }

  /// The store and its limits alone.
  fileprivate var withoutVector: StoreHave {
    StoreHave(
      store: store, vector: [:], digest: nil, policy: policy)
  }

  fileprivate init?(_ wire: WireStoreHave) {
    guard let store = StoreIdentifier(wire.store), wire.vector.count <= Limits.chainsPerStore,
      let vector = [ChainID: UInt64](wire.vector), let policy = Policy(wire.policy)
    else { return nil }
    var digests: [Digest256?] = []
    for bytes in [wire.digest, wire.statements] {
      guard !bytes.isEmpty else {
        digests.append(nil)
        continue
      }
      guard let decoded = try? Digest256(bytes) else { return nil }
      digests.append(decoded)
    }
    self.init(
      store: store, vector: vector, digest: digests[0], policy: policy,
      isBeyond: wire.beyond, isAwaited: wire.awaited,
      statements: digests[1])
    isUnjudged = wire.unjudged
  }

  fileprivate var wire: WireStoreHave {
    var wire = WireStoreHave()
    wire.store = store.rawValue
    wire.vector = vector.sorted { $0.key < $1.key }.map { WireVectorEntry($0.key, $0.value) }
    if let digest { wire.digest = .init(digest.bytes) }
    if let statements { wire.statements = .init(statements.bytes) }
    wire.policy = WirePolicy(policy)
    wire.beyond = isBeyond
    wire.awaited = isAwaited
    wire.unjudged = isUnjudged
    return wire
  }
}

extension WireVectorEntry {
  init(_ chain: ChainID, _ sequence: UInt64) {
    self.init()
    device = .init(chain.device.bytes)
    incarnation = chain.incarnation.rawValue
    self.sequence = sequence
  }
}

extension Policy {
  /// Nil where a limit is beyond ``maximum``.
  fileprivate init?(_ wire: WirePolicy) {
    guard let totalBytes = Int(exactly: wire.totalBytes),
      let valueBytes = Int(exactly: wire.valueBytes)
    else { return nil }
    self.init(
      totalBytes: totalBytes, keys: Int(wire.keys), keyBytes: Int(wire.keyBytes),
      valueBytes: valueBytes)
    guard isWithinBounds else { return nil }
  }
}

extension WirePolicy {
  fileprivate init(_ policy: Policy) {
    self.init()
    totalBytes = UInt64(policy.totalBytes)
    keys = UInt32(policy.keys)
    keyBytes = UInt32(policy.keyBytes)
    valueBytes = UInt64(policy.valueBytes)
  }
}
