@testable import KithCrypto

@testable import KithCore

/// A member's keys, and names of its account.
private struct Reading {
  static let epochs: [EpochKeys] = (0..<2).map { (number: UInt64) in
    var entropy = SeededEntropy(seed: 700 + number)
    return EpochKeys(secret: EpochSecret(random: &entropy), generation: UInt32(2 - number))
  }

  static let carrierKeys = CarrierKeys(recovery: FuzzAccount.shared.devices[2].boxPublicKey)

  static let opener = ObjectOpener(
    account: FuzzAccount.shared.id, carrierKeys: carrierKeys, keys: FuzzAccount.shared.devices[0],
    epochs: [epochs[0]],
    entries: EntryOpener(roster: Roster(account: FuzzAccount.shared.id), keyring: Keyring()))

  static let name: ObjectName = {
    var entropy = SeededEntropy(seed: 710)
    return ObjectName(of: carrierKeys, entropy: &entropy)
  }()

  /// What anybody who has the key can seal, signed by a member.
  static func object(_ body: [UInt8]) -> [UInt8] {
    var entropy = SeededEntropy(seed: 720)
    return SealedObject.seal(
      body,
      SealedObject.Seal(
        name: name, account: FuzzAccount.shared.id, carrierKeys: carrierKeys,
        keys: FuzzAccount.shared.devices[1], epoch: epochs[0],
        nonces: (entropy.draw(), entropy.draw())))
  }

  /// What a former member can seal.
  static func outer(_ plaintext: [UInt8]) -> [UInt8] {
    var entropy = SeededEntropy(seed: 730)
    return carrierKeys.outer.seal(plaintext, nonce: entropy.draw())
  }

  /// A body of a device with all that one can hold.
  static func body() -> [UInt8] {
    let device = FuzzAccount.shared.devices[1].id
    guard let store = StoreIdentifier("com.example.fuzz") else { preconditionFailure() }
    let chain = ChainID(device: device, incarnation: Incarnation(rawValue: 7))
    var body = ObjectBody(
      by: device, at: HybridTime(rawValue: 1 << 56 | 5), under: epochs[0].id)
    body.level = 3
    body.parts = [
      ObjectBody.Part(
        have: StoreHave(store: store, vector: [chain: 3], digest: nil, policy: .standard),
        above: [chain: 2])
    ]
    body.pieces = [name]
    body.rosterDigest = Blake2b.digest256([1])
    return body.encoded()
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
    let (epoch, name) = (Reading.epochs[0], Reading.name)
    switch kind {
    case 0:
      _ = Reading.opener.open(Reading.object(rest), named: name)
      if let (body, _) = ObjectBody.decode(
        rest, account: FuzzAccount.shared.id, epoch: epoch.id)
      {
        require(
          ObjectBody.decode(body.encoded(), account: FuzzAccount.shared.id, epoch: epoch.id) != nil,
          "a body that was read cannot be written")
      }
    case 1: _ = Reading.opener.open(Reading.outer(rest), named: name)
    case 2:
      var entropy = SeededEntropy(seed: 740)
      let inner = epoch.carrierKey.seal(rest, nonce: entropy.draw())
      _ = Reading.opener.open(Reading.outer(epoch.id.bytes + [0, 0] + inner), named: name)
    case 3: _ = Reading.opener.open(rest, named: name)
    default: _ = KnownObject(decoding: rest, account: FuzzAccount.shared.id)
    }
  } seeds: {
    let body = Reading.body()
    let object = Reading.object(body)
    let boxes = [0, 1] + [UInt8](repeating: 1, count: SealedSecret.boxBytes)
    let known = KnownObject(state: .unread, bytes: 4_096, seenSince: 1)
    return [
      ("body", [0] + body), ("outer", [1] + Reading.epochs[1].id.bytes + boxes + object),
      ("plaintext", [2, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 70)), ("object", [3] + object),
      ("known", [4] + known.encoded()),
    ]
  }
}
