package import KithCrypto

/// How much of a store a device covers.
///
/// Devices with equal vectors make equal extents, byte for byte, so that their statements share one
/// (`Docs/Protocol/statements.md`).
package struct Extent: Hashable, Sendable {
  package let store: StoreIdentifier
  /// The digest of the whole vector. Nil if a device tells its peer only the entries that rose.
  package let digest: Digest256?
  /// In a statement at most ``Limits/statementEntries``, of the chains that published last: they
  /// tell something while vectors still differ.
  package let entries: [ChainID: UInt64]
  /// Whether the device is below the store's horizon.
  package let isBelow: Bool
  let body: [UInt8]

  init(
    _ store: StoreIdentifier, digest: Digest256? = nil, entries: [ChainID: UInt64],
    isBelow: Bool = false
  ) {
    self.store = store
    self.digest = digest
    self.entries = entries
    self.isBelow = isBelow
    var wire = WireExtent()
    wire.store = store.rawValue
    if let digest { wire.vectorDigest = .init(digest.bytes) }
    wire.entries = entries.sorted { $0.key < $1.key }.map { WireVectorEntry($0.key, $0.value) }
    wire.belowHorizon = isBelow
    body = wire.encodedBytes()
  }

  /// Nil if malformed; `isSigned` if statements follow it.
  init?(_ body: [UInt8], isSigned: Bool) {
    guard !isSigned || body.count <= Limits.statementBytes,
      MessageOutline.extent.permits(body),
      let wire = try? WireExtent(serializedBytes: body), let store = StoreIdentifier(wire.store),
      wire.entries.count <= (isSigned ? Limits.statementEntries : Limits.chainsPerStore),
      let entries = [ChainID: UInt64](wire.entries)
    else { return nil }
    var digest: Digest256?
    if isSigned || !wire.vectorDigest.isEmpty {
      digest = try? Digest256(wire.vectorDigest)
      guard digest != nil else { return nil }
    }
    self.store = store
    self.digest = digest
    self.entries = entries
    isBelow = wire.belowHorizon
    self.body = body
  }

  /// Digests a vector in order of its chains: the device's id, then incarnation and sequence as
  /// 64-bit big-endian. O(*n* log *n*).
  static func digest(of vector: [ChainID: UInt64]) -> Digest256 {
    var hasher = Blake2b.Hasher()
    for (chain, sequence) in vector.sorted(by: { $0.key < $1.key }) {
      hasher.update(chain.device)
      hasher.update(chain.incarnation.rawValue.bigEndianBytes)
      hasher.update(sequence.bigEndianBytes)
    }
    return hasher.digest256()
  }
}

/// Orders a device's statements about a store; the latest counts.
package struct StatementAge: Hashable, Comparable, Sendable {
  /// The device's hybrid clock when its process made its first statement.
  ///
  /// A running process's vector only rises, so its statements add up. Those of a later process
  /// replace them all: it may have started from an old copy.
  package var started: HybridTime
  /// Counts the process's statements about the store: 1, 2, 3 …
  package var number: UInt32

  package static func < (left: Self, right: Self) -> Bool {
    (left.started, left.number) < (right.started, right.number)
  }
}

/// A device's signed word that it covers an extent, which other devices relay but cannot forge
/// (`Docs/Decisions/overlay.md`).
package struct Statement: Hashable, Sendable {
  package let device: DeviceID
  package let age: StatementAge
  package let extent: Extent
  let signature: Signature

  package var store: StoreIdentifier { extent.store }

  init(_ extent: Extent, age: StatementAge, account: AccountID, keys: DeviceKeys) {
    device = keys.id
    self.age = age
    self.extent = extent
    signature = keys.signing.sign(
      Self.signedBytes(account: account, device: keys.id, age: age, body: extent.body))
  }

  /// Does not check the signature.
  init(_ said: StatementGroup.Said, by device: DeviceID, extent: Extent) {
    self.device = device
    age = said.age
    self.extent = extent
    signature = said.signature
  }

  func isSigned(in account: AccountID) -> Bool {
    device.isValid(
      signature,
      for: Self.signedBytes(account: account, device: device, age: age, body: extent.body))
  }

  /// The domain, a zero byte, the account's id, the device's id, the age as 64-bit and 32-bit
  /// big-endian, the extent's bytes.
  static func signedBytes(
    account: AccountID, device: DeviceID, age: StatementAge, body: [UInt8]
  ) -> [UInt8] {
    Array("kith statement v1".utf8) + [0] + account.bytes + device.bytes
      + age.started.rawValue.bigEndianBytes + age.number.bigEndianBytes + body
  }
}

/// A message's statements with one extent; without any, the extent is the sender's own, unsigned.
package struct StatementGroup: Hashable, Sendable {
  /// A statement without its extent.
  package struct Said: Hashable, Sendable {
    /// The device's ``DeviceID/shortName``.
    package var device: UInt64
    package var age: StatementAge
    var signature: Signature
  }

  package var extent: Extent
  package var said: [Said] = []

  init(_ extent: Extent) { self.extent = extent }

  static func groups(of statements: [Statement]) -> [StatementGroup] {
    var groups: [StatementGroup] = []
    var indices: [Extent: Int] = [:]
    for statement in statements.sorted(by: { $0.device < $1.device }) {
      let index = indices[statement.extent] ?? groups.count
      if index == groups.count {
        indices[statement.extent] = index
        groups.append(StatementGroup(statement.extent))
      }
      groups[index].said.append(
        Said(
          device: statement.device.shortName, age: statement.age, signature: statement.signature))
    }
    return groups
  }

  init?(_ wire: WireStatements) {
    guard let extent = Extent([UInt8](wire.extent), isSigned: !wire.said.isEmpty) else {
      return nil
    }
    self.extent = extent
    for statement in wire.said {
      guard let signature = try? Signature(statement.signature) else { return nil }
      let age = StatementAge(
        started: HybridTime(rawValue: statement.started), number: statement.number)
      said.append(Said(device: statement.device, age: age, signature: signature))
    }
  }

  var wire: WireStatements {
    var wire = WireStatements()
    wire.extent = .init(extent.body)
    wire.said = said.map { said in
      var statement = WireStatement()
      statement.device = said.device
      statement.started = said.age.started.rawValue
      statement.number = said.age.number
      statement.signature = .init(said.signature.bytes)
      return statement
    }
    return wire
  }

  /// More bytes than it takes in a message.
  var sizeBound: Int { 16 + extent.body.count + 100 * said.count }
}

/// Which statements about a store a device holds. If the digests differ, a peer asks for those that
/// it lacks.
package struct HeldStatements: Hashable, Sendable {
  package var store: StoreIdentifier
  package var digest: Digest128
  /// The sender asks for all but these, by ``Statement/name(in:)``; nil: it asks for none.
  package var asksBut: Set<UInt16>?

  init(_ store: StoreIdentifier, digest: Digest128, asksBut names: Set<UInt16>? = nil) {
    self.store = store
    self.digest = digest
    asksBut = names
  }

  init?(_ wire: WireHeldStatements) {
    guard let store = StoreIdentifier(wire.store), let digest = try? Digest128(wire.digest),
      wire.names.count.isMultiple(of: 2), wire.names.count <= 2 * Limits.statements,
      wire.asks || wire.names.isEmpty
    else { return nil }
    self.init(store, digest: digest)
    guard wire.asks else { return }
    let bytes = [UInt8](wire.names)
    asksBut = Set(
      stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
    )
  }

  var wire: WireHeldStatements {
    var wire = WireHeldStatements()
    wire.store = store.rawValue
    wire.digest = .init(digest.bytes)
    wire.asks = asksBut != nil
    wire.names = .init((asksBut ?? []).sorted().flatMap(\.bigEndianBytes))
    return wire
  }
}

extension Statement {
  /// Two bytes of the signature, at a place that the asker's digest gives. If two statements have
  /// one name, they have others in the next question.
  func name(in digest: Digest128) -> UInt16 {
    let (place, bytes) = (Int(digest.bytes[0] % 32), signature.bytes)
    return UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1])
  }
}

extension DeviceID {
  /// The first 8 bytes as a big-endian number; it names a device in statements.
  var shortName: UInt64 { bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}

extension FixedWidthInteger {
  var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }
}
