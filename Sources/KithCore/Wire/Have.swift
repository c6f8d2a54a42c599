package import KithCrypto

/// One store's part of a `Have`.
package struct StoreHave: Hashable, Sendable {
  package var store: StoreIdentifier
  package var vector: [ChainID: UInt64]
  /// The state's digest; nil unless the vector is whole.
  package var digest: Digest256?
  package var policy: Policy
  /// Whether the digest is of more than the vector covers.
  package var isBeyond: Bool
  /// Whether even an empty answer is wanted: none of the session was applied, or part of the last
  /// one cannot be judged yet.
  package var isAwaited: Bool
  /// Whether part of the last answer cannot be judged yet, so that records are wanted again.
  package var isUnjudged = false
  /// The clock of the sender's horizon.
  package var horizon = HybridTime.zero
  /// Whether the sender is below its horizon.
  package var isBelow = false

  package init(
    store: StoreIdentifier, vector: [ChainID: UInt64], digest: Digest256?, policy: Policy,
    isBeyond: Bool = false, isAwaited: Bool = false
  ) {
    self.store = store
    self.vector = vector
    self.digest = digest
    self.policy = policy
    self.isBeyond = isBeyond
    self.isAwaited = isAwaited
  }
}

/// The message in which a device says what it covers of its stores (`Docs/Protocol.md`, "Have").
package struct Have: Hashable, Sendable {
  /// Counts those that ask for a batch; 0 asks for nothing.
  package var number: UInt64
  /// Whether vectors are whole; otherwise they hold only changed entries.
  package var isWhole: Bool
  package var listsAll: Bool
  package var stores: [StoreHave]
  package var words: [WordGroup] = []
  /// The digest of the words that the sender keeps; only in a full `Have`.
  package var wordsDigest: Digest128?
  package var time: ClockReading?

  package init(
    number: UInt64, isWhole: Bool, listsAll: Bool, stores: [StoreHave], time: ClockReading? = nil
  ) {
    self.number = number
    self.isWhole = isWhole
    self.listsAll = listsAll
    self.stores = stores
    self.time = time
  }

  /// A `Have` that only tells the time.
  init(clock time: ClockReading) {
    self.init(number: 0, isWhole: false, listsAll: false, stores: [], time: time)
  }

  /// Nil if malformed, for example with two words of one device.
  init?(_ wire: WireHave) {
    guard wire.stores.count <= Limits.stores else { return nil }
    self.init(
      number: wire.number, isWhole: wire.whole, listsAll: wire.all, stores: [],
      time: wire.clock == 0
        ? nil
        : ClockReading(
          reading: HybridTime(rawValue: wire.clock), isSynchronised: wire.synchronised))
    for store in wire.stores {
      guard let store = StoreHave(store) else { return nil }
      stores.append(store)
    }
    // Each is answered with a whole store, so none may be listed twice.
    guard stores.isStrictlyAscending(by: \.store) else { return nil }
    var devices: Set<UInt64> = []
    var storeWords = 0
    for group in wire.words {
      guard let group = WordGroup(group) else { return nil }
      storeWords += group.content.stores.count
      guard storeWords <= Limits.elementsPerMessage,
        group.said.allSatisfy({ devices.insert($0.device).inserted })
      else { return nil }
      words.append(group)
    }
    if !wire.wordsDigest.isEmpty {
      wordsDigest = try? Digest128(wire.wordsDigest)
      guard wordsDigest != nil else { return nil }
    }
  }

  /// One message, unless the stores take more than ``Limits/haveMessageBytes``. Then each carries
  /// some stores, and if the `Have` lists all stores, a last message only names them, with the words.
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
      Have(number: number, isWhole: isWhole, listsAll: false, stores: part, time: time)
    }
    if listsAll {
      var last = Have(
        number: 0, isWhole: false, listsAll: true, stores: stores.map(\.withoutVector), time: time)
      (last.words, last.wordsDigest) = (words, wordsDigest)
      haves.append(last)
    }
    return haves.map { $0.message() }
  }

  /// Messages that pass words on.
  static func messages(of words: [WordGroup], time: ClockReading) -> [[UInt8]] {
    var haves = [Have(clock: time)]
    var (bytes, count) = (0, 0)
    for var group in words {
      var rest = group.said[...]
      repeat {
        group.said = Array(rest.prefix(Limits.wordsPerMessage))
        rest = rest.dropFirst(group.said.count)
        bytes += group.sizeBound
        count += group.said.count
        if count > Limits.wordsPerMessage || bytes > Limits.haveMessageBytes,
          !haves[haves.count - 1].words.isEmpty
        {
          haves.append(Have(clock: time))
          (bytes, count) = (group.sizeBound, group.said.count)
        }
        haves[haves.count - 1].words.append(group)
      } while !rest.isEmpty
    }
    return haves.map { $0.message() }
  }

  private func message() -> [UInt8] {
    var message = WireMessage()
    message.have.number = number
    message.have.whole = isWhole
    message.have.all = listsAll
    message.have.stores = stores.map(\.wire)
    message.have.words = words.map(\.wire)
    if let wordsDigest { message.have.wordsDigest = .init(wordsDigest.bytes) }
    message.have.clock = time?.reading.rawValue ?? 0
    message.have.synchronised = time?.isSynchronised ?? false
    return message.encodedBytes()
  }
}

extension StoreHave {
  /// More bytes than it takes in a message.
  var sizeBound: Int { 512 + 64 * vector.count }

  fileprivate var withoutVector: StoreHave {
    var have = StoreHave(store: store, vector: [:], digest: nil, policy: policy)
    have.isBelow = isBelow
    return have
  }

  fileprivate init?(_ wire: WireStoreHave) {
    guard let store = StoreIdentifier(wire.store), wire.vector.count <= Limits.chainsPerStore,
      let vector = [ChainID: UInt64](wire.vector), let policy = Policy(wire.policy)
    else { return nil }
    var digest: Digest256?
    if !wire.digest.isEmpty {
      digest = try? Digest256(wire.digest)
      guard digest != nil else { return nil }
    }
    self.init(
      store: store, vector: vector, digest: digest, policy: policy, isBeyond: wire.beyond,
      isAwaited: wire.awaited)
    isUnjudged = wire.unjudged
    horizon = HybridTime(rawValue: wire.horizon)
    isBelow = wire.belowHorizon
  }

  fileprivate var wire: WireStoreHave {
    var wire = WireStoreHave()
    wire.store = store.rawValue
    wire.vector = vector.sorted { $0.key < $1.key }.map { WireVectorEntry($0.key, $0.value) }
    if let digest { wire.digest = .init(digest.bytes) }
    wire.policy = WirePolicy(policy)
    wire.beyond = isBeyond
    wire.awaited = isAwaited
    wire.unjudged = isUnjudged
    wire.horizon = horizon.rawValue
    wire.belowHorizon = isBelow
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
  fileprivate init?(_ wire: WirePolicy) {
    // A later version may permit more than this one.
    guard let totalBytes = Int(exactly: wire.totalBytes),
      let valueBytes = Int(exactly: wire.valueBytes)
    else { return nil }
    self.init(
      totalBytes: totalBytes, keys: Int(wire.keys), keyBytes: Int(wire.keyBytes),
      valueBytes: valueBytes)
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
