package import KithCrypto

/// What a peer has of one store.
package struct StoreHave: Hashable, Sendable {
  package var store: StoreIdentifier
  package var vector: [ChainID: UInt64]
  /// The state's digest; nil unless the vector is whole.
  package var digest: Digest256?
  package var policy: Policy
  package var isProvisional: Bool
  /// Whether the digest is of more than the vector covers.
  package var isBeyond: Bool
  /// Whether no answer of the session was applied yet, so that one is wanted even if it is empty.
  package var isAwaited: Bool

  package init(
    store: StoreIdentifier, vector: [ChainID: UInt64], digest: Digest256?, policy: Policy,
    isProvisional: Bool, isBeyond: Bool = false,
    isAwaited: Bool = false
  ) {
    self.store = store
    self.vector = vector
    self.digest = digest
    self.policy = policy
    self.isProvisional = isProvisional
    self.isBeyond = isBeyond
    self.isAwaited = isAwaited
  }
}

/// What a peer has (design, section 5).
package struct Have: Hashable, Sendable {
  /// Counts the ones that ask for a batch; 0 asks for nothing.
  package var number: UInt64
  /// Whether vectors are whole; otherwise they hold only what changed.
  package var isWhole: Bool
  /// Whether every store of the peer is listed.
  package var listsAll: Bool
  /// Whether the device's first pull is still to come.
  package var isProvisional: Bool
  package var stores: [StoreHave]

  package init(
    number: UInt64, isWhole: Bool, listsAll: Bool, isProvisional: Bool, stores: [StoreHave]
  ) {
    self.number = number
    self.isWhole = isWhole
    self.listsAll = listsAll
    self.isProvisional = isProvisional
    self.stores = stores
  }

  /// Nil where the message is malformed.
  init?(_ wire: WireHave) {
    guard wire.stores.count <= Limits.stores else { return nil }
    self.init(
      number: wire.number, isWhole: wire.whole, listsAll: wire.all,
      isProvisional: wire.provisional, stores: [])
    for store in wire.stores {
      guard let store = StoreHave(store) else { return nil }
      stores.append(store)
    }
    // Each is answered with a whole store, so none may be listed twice.
    guard Set(stores.map(\.store)).count == stores.count else { return nil }
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
        number: number, isWhole: isWhole, listsAll: false, isProvisional: isProvisional,
        stores: part)
    }
    if listsAll {
      haves.append(
        Have(
          number: 0, isWhole: false, listsAll: true, isProvisional: isProvisional,
          stores: stores.map(\.withoutVector)))
    }
    return haves.map { $0.message() }
  }

  private func message() -> [UInt8] {
    var message = WireMessage()
    message.have.number = number
    message.have.whole = isWhole
    message.have.all = listsAll
    message.have.provisional = isProvisional
    message.have.stores = stores.map(\.wire)
    return message.encodedBytes()
  }
}

extension StoreHave {
  /// More bytes than it ever takes in a message.
  fileprivate var sizeBound: Int { 512 + 64 * vector.count }

  /// The store and its limits alone.
  fileprivate var withoutVector: StoreHave {
    StoreHave(
      store: store, vector: [:], digest: nil, policy: policy, isProvisional: isProvisional)
  }

  fileprivate init?(_ wire: WireStoreHave) {
    guard let store = StoreIdentifier(wire.store), wire.vector.count <= Limits.chainsPerStore,
      let policy = Policy(wire.policy)
    else { return nil }
    var digest: Digest256?
    if !wire.digest.isEmpty {
      guard let decoded = try? Digest256(wire.digest) else { return nil }
      digest = decoded
    }
    self.init(
      store: store, vector: [:], digest: digest, policy: policy, isProvisional: wire.provisional,
      isBeyond: wire.beyond, isAwaited: wire.awaited)
    for entry in wire.vector {
      guard let device = try? DeviceID(entry.device), entry.sequence <= Limits.sequence else {
        return nil
      }
      let chain = ChainID(
        device: device, incarnation: Incarnation(rawValue: entry.incarnation))
      vector[chain] = entry.sequence
    }
  }

  fileprivate var wire: WireStoreHave {
    var wire = WireStoreHave()
    wire.store = store.rawValue
    wire.vector = vector.sorted { $0.key < $1.key }.map { chain, sequence in
      var entry = WireVectorEntry()
      entry.device = .init(chain.device.bytes)
      entry.incarnation = chain.incarnation.rawValue
      entry.sequence = sequence
      return entry
    }
    if let digest { wire.digest = .init(digest.bytes) }
    wire.policy = WirePolicy(policy)
    wire.provisional = isProvisional
    wire.beyond = isBeyond
    wire.awaited = isAwaited
    return wire
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
