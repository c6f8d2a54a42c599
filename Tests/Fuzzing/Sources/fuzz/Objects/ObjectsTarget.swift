@testable import KithCrypto

@testable import KithCore

/// A member's keys, and names under its epochs.
private struct Reading {
  static let epochs: [EpochKeys] = (0..<2).map { (number: UInt64) in
    var entropy = SeededEntropy(seed: 700 + number)
    return EpochKeys(secret: EpochSecret(random: &entropy), generation: UInt32(2 - number))
  }

  static let opener = ObjectOpener(
    account: FuzzAccount.shared.id, keys: FuzzAccount.shared.devices[0], epochs: epochs)

  static func name(_ kind: ObjectName.Kind, of epoch: EpochKeys) -> ObjectName {
    var entropy = SeededEntropy(seed: 710)
    return ObjectName(kind, of: epoch, entropy: &entropy)
  }

  /// What anybody who has the key can seal, signed by a member.
  static func object(_ body: [UInt8], _ name: ObjectName, under epoch: EpochKeys) -> [UInt8] {
    var entropy = SeededEntropy(seed: 720)
    return SealedObject.seal(
      body, named: name, under: epoch, in: FuzzAccount.shared.id,
      by: FuzzAccount.shared.devices[1], nonce: entropy.draw())
  }

  /// A parcel of a device with all that one can hold.
  static func parcel() -> [UInt8] {
    let device = FuzzAccount.shared.devices[1].id
    guard let store = StoreIdentifier("com.example.fuzz") else { preconditionFailure() }
    let chain = ChainID(device: device, incarnation: Incarnation(rawValue: 7))
    var parcel = Parcel(by: device, at: HybridTime(rawValue: 1 << 56 | 5))
    parcel.stores = [
      Parcel.Store(
        have: StoreHave(store: store, vector: [chain: 3], digest: nil, policy: .standard),
        above: [chain: 2], isEverything: true)
    ]
    parcel.replaces = [name(.parcel, of: epochs[0]), name(.parcel, of: epochs[1])].sorted()
    parcel.recipients = [device]
    parcel.rosterDigest = Blake2b.digest256([1])
    return parcel.encoded()
  }
}

extension FuzzTarget {
  /// Objects of carriers, as members, former members and strangers can make them.
  ///
  /// None takes down a reader, and what is read is written again as the same.
  static let objects = FuzzTarget(name: "objects") { bytes in
    var input = FuzzInput(bytes)
    let kind = input.number(below: 5)
    let rest = input.rest()
    let epoch = Reading.epochs[0]
    switch kind {
    case 0:
      let name = Reading.name(.parcel, of: epoch)
      _ = Reading.opener.open(Reading.object(rest, name, under: epoch), named: name)
      if let (parcel, _) = Parcel.decode(rest, account: FuzzAccount.shared.id) {
        require(
          Parcel.decode(parcel.encoded(), account: FuzzAccount.shared.id) != nil,
          "a parcel that was read cannot be written")
      }
    case 1:
      let name = Reading.name(.handover, of: Reading.epochs[1])
      let count = UInt32(rest.count).bigEndianBytes
      var entropy = SeededEntropy(seed: 730)
      let sealed = Reading.epochs[1].carrierKey.seal(count + rest, nonce: entropy.draw())
      _ = Reading.opener.open(sealed, named: name)
    case 2:
      let name = Reading.name(.parcel, of: epoch)
      var entropy = SeededEntropy(seed: 740)
      let sealed = epoch.carrierKey.seal(rest, nonce: entropy.draw())
      _ = Reading.opener.open(sealed, named: name)
    case 3: _ = Reading.opener.open(rest, named: Reading.name(.parcel, of: epoch))
    default: _ = KnownObject(decoding: rest, account: FuzzAccount.shared.id)
    }
  } seeds: {
    let parcel = Reading.parcel()
    let name = Reading.name(.parcel, of: Reading.epochs[0])
    let object = Reading.object(parcel, name, under: Reading.epochs[0])
    let handover = Handover(
      to: Reading.epochs[0].id, boxes: [[UInt8](repeating: 1, count: 80)], parcel: object)
    var wire = WireHandover()
    wire.epoch = .init(handover.epoch.bytes)
    wire.boxes = handover.boxes.map { .init($0) }
    wire.parcel = .init(handover.parcel)
    let known = KnownObject(
      state: .unread, epoch: Reading.epochs[0].id, bytes: 4_096, firstSeen: 1, isSeen: true)
    return [
      ("parcel", [0] + parcel), ("handover", [1] + wire.encodedBytes()),
      ("plaintext", [2, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 70)), ("object", [3] + object),
      ("known", [4] + known.encoded()),
    ]
  }
}
