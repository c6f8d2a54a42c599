internal import KithCrypto

/// The bytes of an object on a carrier: a signed body under the epoch's key, the epoch's secret for
/// members that lack it, and a layer under the account's key around both
/// (`Docs/Protocol/carriers.md`, "Objects").
enum SealedObject {
  /// Everything that seals a body; only the signature authenticates its author.
  struct Seal {
    var name: ObjectName
    var account: AccountID
    var carrierKeys: CarrierKeys
    var keys: DeviceKeys
    var epoch: EpochKeys
    /// The epoch's secret, sealed to each member and to the recovery key; or empty.
    var boxes: [[UInt8]] = []
    var nonces: (outer: BoxNonce, inner: BoxNonce)
  }

  /// Bytes around a body, without boxes.
  static let overhead =
    CarrierOuterKey.overhead + epochBytes + 2 + CarrierKey.overhead + 4 + Signature.byteCount
  private static let epochBytes = 32

  /// Signs, pads and seals a body.
  static func seal(_ body: [UInt8], _ seal: Seal) -> [UInt8] {
    let head = head(seal.boxes)
    let signature = seal.keys.signing.sign(
      signedBytes(body, seal.name, seal.epoch.id, seal.account, seal.boxes))
    var plaintext = UInt32(body.count).bigEndianBytes + signature.bytes + body
    let size = overhead + head.count - 2 + body.count
    plaintext.append(contentsOf: repeatElement(0, count: paddedSize(size) - size))
    let inner = seal.epoch.carrierKey.seal(plaintext, nonce: seal.nonces.inner)
    return seal.carrierKeys.outer.seal(
      seal.epoch.id.bytes + head + inner, nonce: seal.nonces.outer)
  }

  /// An object without its outer layer.
  struct Outer {
    var epoch: EpochID
    var boxes: [[UInt8]]
    var inner: [UInt8]
  }

  /// Nil if it does not open with the account's key, or is malformed.
  static func openOuter(_ sealed: [UInt8], with keys: CarrierKeys) -> Outer? {
    guard let plaintext = try? keys.outer.open(sealed), plaintext.count >= epochBytes + 2,
      let epoch = try? Digest256(plaintext[..<epochBytes])
    else { return nil }
    let count = Int(plaintext[epochBytes]) << 8 | Int(plaintext[epochBytes + 1])
    let (start, size) = (epochBytes + 2, SealedSecret.boxBytes)
    let end = start + count * size
    guard count <= Limits.objectBoxes, plaintext.count >= end else { return nil }
    return Outer(
      epoch: EpochID(epoch),
      boxes: (0..<count).map { Array(plaintext[start + $0 * size..<start + ($0 + 1) * size]) },
      inner: Array(plaintext[end...]))
  }

  /// The body and the signature, which is not checked yet; nil if this epoch's key did not seal it.
  static func openInner(
    _ sealed: [UInt8], under epoch: EpochKeys
  ) -> (body: [UInt8], signature: Signature)? {
    let header = 4 + Signature.byteCount
    guard let plaintext = try? epoch.carrierKey.open(sealed), plaintext.count >= header,
      let signature = try? Signature(plaintext[4..<header])
    else { return nil }
    let count = plaintext.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    guard count <= plaintext.count - header,
      plaintext[(header + count)...].allSatisfy({ $0 == 0 })
    else { return nil }
    return (Array(plaintext[header..<header + count]), signature)
  }

  /// The domain, a zero byte, the account's id, the epoch's id, the object's name, the boxes with
  /// their number before them, the body.
  static func signedBytes(
    _ body: [UInt8], _ name: ObjectName, _ epoch: EpochID, _ account: AccountID,
    _ boxes: [[UInt8]]
  ) -> [UInt8] {
    Array("kith object v1".utf8) + [0] + account.bytes + epoch.bytes + name.bytes + head(boxes)
      + body
  }

  private static func head(_ boxes: [[UInt8]]) -> [UInt8] {
    UInt16(boxes.count).bigEndianBytes + boxes.joined()
  }

  /// 4 KiB, or the next size of Padmé (Nikitin and others, "Reducing Metadata Leakage from Encrypted
  /// Files and Communication with PURBs", 2019), which adds at most 12%.
  static func paddedSize(_ size: Int) -> Int {
    guard size > Limits.smallestObjectBytes else { return Limits.smallestObjectBytes }
    let exponent = Int.bitWidth - 1 - size.leadingZeroBitCount
    let kept = Int.bitWidth - exponent.leadingZeroBitCount
    let mask = 1 << max(0, exponent - kept) - 1
    return (size + mask) & ~mask
  }
}

/// An object that was got from a carrier, with every check that needs no state.
package struct OpenedObject: Sendable {
  enum Content {
    /// It does not open, or its signature is wrong.
    case unreadable
    /// It is sealed under an epoch that this device cannot open, or with the newest key in a form
    /// that it does not know: of a later version.
    case foreign
    case opened(ObjectBody, [InboundMessage])
  }

  let content: Content
}

/// Opens objects outside any lock, with the keys that the replica has now.
package struct ObjectOpener: Sendable {
  let account: AccountID
  /// Nil: this device lacks the genesis record, and uses no carrier.
  let carrierKeys: CarrierKeys?
  let keys: DeviceKeys
  /// The newest comes first.
  let epochs: [EpochKeys]
  let entries: EntryOpener

  /// Opens its entries, too.
  ///
  /// - Complexity: O(*n*) in the bytes, a signature check for the object and each change set, and
  ///   under an unknown epoch a trial for each box.
  package func open(
    _ bytes: [UInt8], named name: ObjectName, concurrently: InboundMessage.Repeater? = nil
  ) -> OpenedObject {
    OpenedObject(content: content(of: bytes, named: name, concurrently))
  }

  private func content(
    of bytes: [UInt8], named name: ObjectName, _ repeater: InboundMessage.Repeater?
  ) -> OpenedObject.Content {
    guard bytes.count <= Limits.objectBytes, let carrierKeys, carrierKeys.made(name),
      let outer = SealedObject.openOuter(bytes, with: carrierKeys)
    else { return .unreadable }
    guard let epoch = epochs.first(where: { $0.id == outer.epoch }) ?? opened(outer) else {
      return .foreign
    }
    guard let (body, signature) = SealedObject.openInner(outer.inner, under: epoch) else {
      return .unreadable
    }
    guard
      let decoded = ObjectBody.decode(
        body, account: account, epoch: epoch.id, concurrently: repeater)
    else { return epoch.id == epochs.first?.id ? .foreign : .unreadable }
    guard
      decoded.body.author.isValid(
        signature,
        for: SealedObject.signedBytes(body, name, epoch.id, account, outer.boxes))
    else { return .unreadable }
    return .opened(
      decoded.body,
      decoded.content.map { message in
        var message = message
        message.open(with: entries)
        return message
      })
  }

  /// Its records tell the epoch's generation.
  private func opened(_ outer: SealedObject.Outer) -> EpochKeys? {
    outer.boxes.lazy.compactMap {
      EpochKeys.open($0, of: outer.epoch, generation: 0, with: keys.box)
    }.first
  }
}

extension [InboundMessage] {
  /// The latest publishing clock inside: as in a session, only what was published can be too early.
  var latestPublished: HybridTime {
    lazy.flatMap { message -> [CheckedChangeSet] in
      if case .batch(let batch) = message.body { batch.changeSets } else { [] }
    }.compactMap { checked in
      if case .sound(let changeSet) = checked { changeSet.header.clock } else { nil }
    }.max() ?? .zero
  }
}

/// The content of an object, for checkers.
package struct ObjectFacts: Sendable {
  package var author: DeviceID
  package var epoch: EpochID
  package var level: Int
  package var isPiece: Bool
  /// The vectors that its reader covers before, and afterwards.
  package var stores: [StoreIdentifier: (above: [ChainID: UInt64], through: [ChainID: UInt64])]
  /// How many words are inside, and whether it has records.
  package var words: Int
  package var hasRecords: Bool
  package var messages: [InboundMessage]
}

extension OpenedObject {
  /// Nil: it does not open.
  package var facts: ObjectFacts? {
    guard case .opened(let body, let messages) = content else { return nil }
    return ObjectFacts(
      author: body.author, epoch: body.epoch, level: Int(body.level), isPiece: body.isPiece,
      stores: Dictionary(
        body.parts.map { ($0.store, (above: $0.above, through: $0.have.vector)) },
        uniquingKeysWith: { first, _ in first }),
      words: body.wordVersions.count, hasRecords: body.rosterDigest != nil, messages: messages)
  }
}

extension ObjectOpener {
  /// Whether this device has an epoch's key.
  package func holds(_ epoch: EpochID) -> Bool { epochs.contains { $0.id == epoch } }
}
