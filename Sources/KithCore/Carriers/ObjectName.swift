package import KithCrypto

/// One of this device's carriers: a digest of its address, which the core does not know.
package struct CarrierID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let digest: Digest128

  package init(_ digest: Digest128) {
    self.digest = digest
  }

  package var description: String { digest.hex }

  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// The directory of an account's objects on carriers, the key of their names and that of their outer
/// layer (`Docs/Protocol/carriers.md`). All members, former ones too, and a person with the recovery
/// key know them. The storage knows the directory alone.
package final class CarrierKeys: Sendable {
  /// The directory of the account's objects.
  package let place: String
  let names: CarrierNameKey
  let outer: CarrierOuterKey
  let recovery: BoxPublicKey

  /// `recovery` is the genesis record's. So its owner needs nothing else to find and open them.
  package init(recovery: BoxPublicKey) {
    func digest(_ domain: String) -> Digest256 {
      Blake2b.digest256(Array(domain.utf8) + [0], recovery.bytes)
    }
    place = "kith1/" + digest("kith place v1").hex.prefix(32)
    names = Self.key(digest("kith names v1"))
    outer = Self.key(digest("kith outer v1"))
    self.recovery = recovery
  }

  private static func key<Key: SecretKey & ~Copyable>(_ digest: Digest256) -> Key {
    var bytes = digest.bytes
    do {
      return try Key(zeroing: &bytes)
    } catch {
      preconditionFailure("a digest has 32 bytes")
    }
  }

  /// Whether somebody who knows the key of names made a name.
  package func made(_ name: ObjectName) -> Bool {
    ObjectName.tag(of: Array(name.bytes.prefix(8)), self) == Array(name.bytes.suffix(8))
  }
}

/// The name of an object on a carrier: 8 random bytes, then 8 bytes by which members recognise it.
/// It tells neither author nor epoch, and outsiders cannot make one (`Docs/Protocol/carriers.md`).
package struct ObjectName: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let digest: Digest128

  package init(_ digest: Digest128) {
    self.digest = digest
  }

  /// Nil unless it is 32 hexadecimal digits in lower case, as a carrier lists it.
  package init?(_ text: String) {
    guard let digest = Digest128(hex: text), digest.hex == text else { return nil }
    self.digest = digest
  }

  package init(of account: CarrierKeys, entropy: inout some Entropy) {
    let random = Array(entropy.draw(Digest128.self).bytes.prefix(8))
    guard let digest = try? Digest128(random + Self.tag(of: random, account)) else {
      preconditionFailure("a name has 16 bytes")
    }
    self.digest = digest
  }

  static let byteCount = 16

  var bytes: [UInt8] { digest.bytes }
  package var description: String { digest.hex }

  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }

  fileprivate static func tag(of random: [UInt8], _ account: CarrierKeys) -> [UInt8] {
    Array(Blake2b.keyed128(random, key: account.names).bytes.prefix(8))
  }
}
