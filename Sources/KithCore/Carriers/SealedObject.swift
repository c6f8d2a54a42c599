internal import KithCrypto

/// The bytes of an object on a carrier: a signed parcel, padded, and sealed under an epoch's key.
enum SealedObject {
  /// Signs, pads and seals a body. Only the signature authenticates its author; the seal conceals it
  /// from the carrier.
  static func seal(
    _ body: [UInt8], named name: ObjectName, under epoch: EpochKeys, in account: AccountID,
    by keys: DeviceKeys, nonce: BoxNonce
  ) -> [UInt8] {
    let signature = keys.signing.sign(signedBytes(body, name, epoch.id, account))
    var plaintext = UInt32(body.count).bigEndianBytes + signature.bytes + body
    pad(&plaintext)
    return epoch.carrierKey.seal(plaintext, nonce: nonce)
  }

  /// The body and the signature, which is not checked yet; nil if this epoch's key did not seal it.
  static func open(
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

  /// The domain, a zero byte, the account's id, the epoch's id, the object's name, the body.
  static func signedBytes(
    _ body: [UInt8], _ name: ObjectName, _ epoch: EpochID, _ account: AccountID
  ) -> [UInt8] {
    Array("kith parcel v1".utf8) + [0] + account.bytes + epoch.bytes + name.bytes + body
  }

  /// Pads so that the sealed object has a common size.
  static func pad(_ plaintext: inout [UInt8]) {
    let size = plaintext.count + CarrierKey.overhead
    plaintext.append(contentsOf: repeatElement(0, count: paddedSize(size) - size))
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
    case parcel(Parcel, [InboundMessage])
    /// It leads to an epoch.
    case handover(Parcel, [InboundMessage], to: EpochID)

    /// Nil if it does not open.
    var opened: (parcel: Parcel, messages: [InboundMessage])? {
      switch self {
      case .unreadable: nil
      case .parcel(let parcel, let messages), .handover(let parcel, let messages, _):
        (parcel, messages)
      }
    }
  }

  let content: Content
}

/// Opens objects outside any lock, with the keys that the replica has now.
package struct ObjectOpener: Sendable {
  let account: AccountID
  let keys: DeviceKeys
  let epochs: [EpochKeys]

  /// - Complexity: O(*n*) in the bytes, a signature check for the object and each change set, and for
  ///   a handover to an unknown epoch a trial for each member.
  package func open(
    _ bytes: [UInt8], named name: ObjectName, concurrently: InboundMessage.Repeater? = nil
  ) -> OpenedObject {
    guard bytes.count <= Limits.objectBytes, let origin = name.origin(among: epochs) else {
      return OpenedObject(content: .unreadable)
    }
    switch origin.kind {
    case .parcel:
      let opened = parcel(bytes, named: name, under: origin.epoch, concurrently)
      return OpenedObject(content: opened.map { .parcel($0.parcel, $0.content) } ?? .unreadable)
    case .handover:
      return OpenedObject(content: handover(bytes, named: name, under: origin.epoch, concurrently))
    }
  }

  private func parcel(
    _ sealed: [UInt8], named name: ObjectName, under epoch: EpochKeys,
    _ repeater: InboundMessage.Repeater?
  ) -> (parcel: Parcel, content: [InboundMessage])? {
    guard let (body, signature) = SealedObject.open(sealed, under: epoch),
      var decoded = Parcel.decode(body, account: account, concurrently: repeater),
      decoded.parcel.author.isValid(
        signature, for: SealedObject.signedBytes(body, name, epoch.id, account))
    else { return nil }
    // As in a session, only what was published can be too early.
    decoded.parcel.clock = decoded.content.lazy.compactMap(\.latestPublished).max() ?? .zero
    return decoded
  }

  private func handover(
    _ sealed: [UInt8], named name: ObjectName, under epoch: EpochKeys,
    _ repeater: InboundMessage.Repeater?
  ) -> OpenedObject.Content {
    guard let outer = try? epoch.carrierKey.open(sealed), let handover = Handover(outer),
      let newest = epochs.first(where: { $0.id == handover.epoch })
        ?? handover.boxes.lazy.compactMap({
          EpochKeys.open($0, of: handover.epoch, generation: 0, with: keys.box)
        }).first,
      let inner = parcel(handover.parcel, named: name, under: newest, repeater)
    else { return .unreadable }
    return .handover(inner.parcel, inner.content, to: newest.id)
  }
}

/// The content of an object under an older epoch's key: the newest epoch's secret for each member,
/// and a parcel under it.
struct Handover {
  var epoch: EpochID
  var boxes: [[UInt8]]
  var parcel: [UInt8]

  init(to epoch: EpochID, boxes: [[UInt8]], parcel: [UInt8]) {
    self.epoch = epoch
    self.boxes = boxes
    self.parcel = parcel
  }

  /// Nil if malformed. The plaintext has its length before it, and zeros behind it.
  init?(_ padded: [UInt8]) {
    guard padded.count >= 4 else { return nil }
    let count = padded.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    guard count <= padded.count - 4, padded[(4 + count)...].allSatisfy({ $0 == 0 }) else {
      return nil
    }
    let bytes = Array(padded[4..<4 + count])
    guard MessageOutline.handover.permits(bytes),
      let wire = try? WireHandover(serializedBytes: bytes),
      let epoch = try? Digest256(wire.epoch)
    else { return nil }
    self.init(
      to: EpochID(epoch), boxes: wire.boxes.map { [UInt8]($0) }, parcel: [UInt8](wire.parcel))
  }

  func sealed(under older: EpochKeys, nonce: BoxNonce) -> [UInt8] {
    var wire = WireHandover()
    wire.epoch = .init(epoch.bytes)
    wire.boxes = boxes.map { .init($0) }
    wire.parcel = .init(parcel)
    let bytes = wire.encodedBytes()
    var plaintext = UInt32(bytes.count).bigEndianBytes + bytes
    SealedObject.pad(&plaintext)
    return older.carrierKey.seal(plaintext, nonce: nonce)
  }
}

extension InboundMessage {
  fileprivate var latestPublished: HybridTime? {
    guard case .batch(let batch) = body else { return nil }
    return batch.changeSets.lazy.compactMap { checked in
      if case .sound(let changeSet) = checked { changeSet.header.clock } else { nil }
    }.max()
  }
}
