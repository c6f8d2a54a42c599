import KithCrypto

@testable import KithCore

/// Keys and records that are the same in every run.
func deviceKeys(_ seed: UInt64) -> DeviceKeys {
  var entropy = SeededEntropy(seed: seed)
  return DeviceKeys(
    signingSeed: SigningSeed(random: &entropy), boxSeed: BoxSeed(random: &entropy),
    transport: TransportPrivateKey(random: &entropy))
}

func recoveryKey(_ seed: UInt64) -> RecoveryKey {
  var entropy = SeededEntropy(seed: seed)
  return RecoveryKey(entropy: &entropy)
}

/// An account with its creator, and records made for it.
struct Fixture {
  let recovery = recoveryKey(900)
  let creator = deviceKeys(1)
  let account: AccountID
  let records: [Record]
  var entropy = SeededEntropy(seed: 77)

  init() throws {
    (account, records) = try Account.create(
      recovery: recovery, keys: creator, name: "first", issued: 1, entropy: &entropy)
  }

  func roster(_ records: [Record]) -> Roster {
    var roster = Roster(account: account)
    _ = roster.learn(all: records)
    return roster
  }

  /// A certificate signed by its device and by `signer`.
  func certificate(
    of keys: DeviceKeys, by signer: DeviceKeys?, name: String = "device"
  ) throws -> Record {
    let request = try JoinRequest.make(account: account, keys: keys, name: name, issued: 2)
    return signer.map { request.signed(by: $0.signing, account: account) } ?? request
  }

  func revocation(
    of device: DeviceID, keeps: [DeviceID] = [], by signer: DeviceKeys, issued: UInt64 = 3
  ) throws -> Record {
    let body = RecordBody.encode(
      RevocationRecord(device: device, keeps: keeps.sorted(), issued: issued))
    return try Record(body: body, signatures: []).signed(by: signer.signing, account: account)
  }
}

/// All orders of a few elements.
func permutations<Element>(_ elements: [Element]) -> [[Element]] {
  guard elements.count > 1 else { return [elements] }
  return elements.indices.flatMap { index in
    var rest = elements
    let first = rest.remove(at: index)
    return permutations(rest).map { [first] + $0 }
  }
}
