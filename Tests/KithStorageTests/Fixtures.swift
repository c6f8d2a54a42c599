import KithCore
import KithCrypto
import KithStorage
import KithTestSupport

extension TestDirectory {
  var device: String { child("device") }
}

func newSecrets() -> DeviceSecrets {
  var random = SystemRandom()
  return DeviceSecrets(random: &random)
}

extension DeviceDirectory {
  /// Makes a device, and opens it.
  static func create(
    at path: String, secrets: consuming DeviceSecrets, initial: [Mutation],
    passphrase: Passphrase? = nil, stretching: Argon2Parameters = .moderate
  ) throws(StorageError) -> OpenDevice {
    try prepare(
      in: reserve(path), secrets: secrets, initial: initial, passphrase: passphrase,
      stretching: stretching
    ).open()
  }
}

/// Draws mutations about few stores, devices and change sets, so that they meet.
struct MutationSource {
  var random: SeededEntropy
  /// The value from which the clock of drafts counts on.
  var latestClock: UInt64 = 1

  init(seed: UInt64) { random = SeededEntropy(seed: seed) }

  static let stores = ["com.example.A", "com.example.Ä", "z"].compactMap { StoreIdentifier($0) }

  mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

  mutating func store() -> StoreIdentifier { Self.stores[number(Self.stores.count)] }

  mutating func device() -> DeviceID {
    let byte = UInt8(number(3))
    return DeviceID { $0.copyBytes(from: [UInt8](repeating: byte, count: 32)) }
  }

  mutating func incarnation() -> Incarnation {
    Incarnation(rawValue: [1, UInt64.max, 1 << 63][number(3)])
  }

  mutating func digest() -> Digest256 {
    let byte = UInt8(number(2))
    return Digest256 { $0.copyBytes(from: [UInt8](repeating: byte, count: 32)) }
  }

  mutating func reference() -> ChangeSetReference {
    ChangeSetReference(
      device: device(), incarnation: incarnation(), sequence: UInt64(number(4) + 1),
      digest: digest())
  }

  mutating func bytes() -> [UInt8] {
    random.bytes(number(10) == 0 ? number(20_000) : number(200))
  }

  mutating func mutation() -> Mutation {
    switch number(25) {
    case 0: .put(.clock, HybridTime(rawValue: random.next()).row)
    case 1: .put(.incarnation, Incarnation(rawValue: random.next()).row)
    case 2: .put(.store(store(), .adopted), HybridTime(rawValue: random.next()).row)
    case 3: .put(.record(digest()), bytes())
    case 4: .addresses(device(), (0..<number(3)).map { "[fe80::\($0)]:4711" })
    case 5:
      .put(.store(store(), .policy), Policy(totalBytes: number(1_000), keys: number(10)).row)
    case 6, 7, 8:
      .put(
        .store(store(), .changeSet(reference())),
        StoredChangeSet(header: [1] + bytes(), signature: random.bytes(64)).row)
    case 9: .remove(.store(store(), .changeSet(reference())))
    case 10, 11, 12: .put(.store(store(), .entry(reference(), UInt32(number(4)))), bytes())
    case 13: .remove(.store(store(), .entry(reference(), UInt32(number(4)))))
    case 14:
      .put(
        .store(store(), .vector(ChainID(device: device(), incarnation: incarnation()))),
        random.next().row)
    case 15:
      .remove(.store(store(), .vector(ChainID(device: device(), incarnation: incarnation()))))
    case 16: .put(.store(store(), .draft(UInt64(number(4)) &- 1)), bytes())
    case 17: .remove(.store(store(), .draft(UInt64(number(4)) &- 1)))
    case 18: .put(.store(store(), .refusal(UInt64(number(4)))), bytes())
    case 19: .remove(.record(digest()))
    case 20, 21: .put(.store(store(), .pastValue(UInt64(number(4)) &- 1)), bytes())
    case 22: .remove(.store(store(), .pastValue(UInt64(number(4)) &- 1)))
    case 23:
      .put(
        .store(store(), .horizon),
        Horizon(
          clock: HybridTime(rawValue: random.next()), isBelow: number(2) == 0,
          unseen: (0..<number(3)).map { _ in device() }
        ).row)
    default: .remove(.store(store(), .refusal(UInt64(number(4)))))
    }
  }

  mutating func mutations(_ count: Int) -> [Mutation] { (0..<count).map { _ in mutation() } }
}
