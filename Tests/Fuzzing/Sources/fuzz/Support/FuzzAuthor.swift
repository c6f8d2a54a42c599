@testable import KithCrypto

@testable import KithCore

/// A member that signs what its own replica would not.
struct FuzzAuthor {
  let index: Int
  let sealer: Sealer

  /// - Parameters:
  ///   - index: The device.
  ///   - incarnation: The database that it says it publishes from.
  ///   - store: The store that the tag names.
  ///   - account: The account that the signature is for.
  ///   - epoch: The epoch that the header names; nil: the account's.
  init(
    _ index: Int, incarnation: UInt64, store: StoreIdentifier = FuzzAccount.store,
    account: AccountID = FuzzAccount.shared.id, epoch: EpochID? = nil
  ) {
    let replica = FuzzDevice.templates[index].replica
    var keyring = replica.keyring
    guard let current = keyring.current,
      let certificate = replica.roster.certificate(of: replica.keys.id),
      let box = keyring.sharedBox(epoch: current.id, author: certificate)
    else { fatalError("a member without an epoch") }
    self.index = index
    sealer = Sealer(
      box: box, storeTag: current.storeTag(of: store), epoch: epoch ?? current.id,
      chain: ChainID(
        device: replica.keys.id, incarnation: Incarnation(rawValue: incarnation)),
      account: account, keys: replica.keys)
  }

  func seal(_ plaintexts: [[UInt8]], sequence: UInt64, clock: HybridTime) -> ChangeSet {
    // As a device does, none twice: the prefix follows from what is sealed.
    var hasher = Blake2b.Hasher()
    for plaintext in plaintexts { hasher.update(plaintext) }
    let digest = hasher.digest256()
    guard let prefix = try? NoncePrefix(digest.bytes.prefix(NoncePrefix.byteCount)) else {
      fatalError("a prefix of another length")
    }
    return sealer.seal(plaintexts, sequence: sequence, clock: clock, noncePrefix: prefix)
  }
}

/// Milliseconds behind the moment at which every input begins.
func clock(_ milliseconds: Int) -> HybridTime {
  HybridTime(
    milliseconds: UInt64(Int64(FuzzAccount.start.wallMilliseconds) + Int64(milliseconds)))
}

func text(_ size: Int, _ letter: UInt8 = 0x61) -> EncodedValue {
  guard
    let value = try? EncodedValue(
      .string(String(repeating: Character(UnicodeScalar(letter)), count: size)))
  else { fatalError("a text has a depth") }
  return value
}
