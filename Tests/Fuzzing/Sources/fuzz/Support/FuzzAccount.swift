@testable import KithCrypto

@testable import KithCore

/// An account of four devices, and a device of none, made once: making keys and records costs more
/// than most inputs.
struct FuzzAccount: Sendable {
  let id: AccountID
  let devices: [DeviceKeys]
  let stranger: DeviceKeys
  let records: [Record]
  /// A record of another account, and one that none of its members has signed.
  let foreign: [Record]

  static let shared = make()

  static let store = StoreIdentifier("com.example.Fuzz") ?? { fatalError() }()
  /// Small, so that little is needed to fill it.
  static let policy = Policy(totalBytes: 4_000, keys: 6, keyBytes: 16, valueBytes: 2_000)
  static let start = Instant(
    wallMilliseconds: 1_800_000_000_000, monotonicMilliseconds: 1_000_000)

  private static func make() -> FuzzAccount {
    do {
      var random = SeededEntropy(seed: 4114)
      let first = makeKeys(&random)
      let (account, records) = try Account.create(
        recovery: RecoveryKey(entropy: &random), keys: first, name: "0", issued: 1,
        entropy: &random)
      var roster = Roster(account: account)
      _ = roster.learn(all: records)
      var keyring = Keyring()
      keyring.refresh(from: roster, keys: first)
      var all = [first]
      for name in ["1", "2", "3"] {
        let keys = makeKeys(&random)
        let request = try JoinRequest.make(account: account, keys: keys, name: name, issued: 2)
        let accepted = try JoinRequest.accept(
          request, roster: roster, keyring: keyring, keys: first, entropy: &random)
        _ = roster.learn(all: accepted)
        all.append(keys)
      }
      let stranger = makeKeys(&random)
      let other = try Account.create(
        recovery: RecoveryKey(entropy: &random), keys: stranger, name: "other", issued: 1,
        entropy: &random)
      return FuzzAccount(
        id: account, devices: all, stranger: stranger, records: roster.records,
        foreign: other.1)
    } catch {
      fatalError("no account: \(error)")
    }
  }

  private static func makeKeys(_ random: inout SeededEntropy) -> DeviceKeys {
    DeviceKeys(
      signingSeed: SigningSeed(random: &random), boxSeed: BoxSeed(random: &random),
      transport: TransportPrivateKey(random: &random))
  }

  /// The first contents of a device's disk.
  func disk() -> Snapshot {
    var disk = Snapshot()
    for record in records { disk.records[record.id] = record.encoded }
    return disk
  }
}
