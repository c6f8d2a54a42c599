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

extension AccountID {
  /// The directory of an account's objects on a carrier (`Docs/Protocol/carriers.md`).
  package var carrierPlace: String {
    let digest = Blake2b.digest256(Array("kith place v1".utf8) + [0], bytes)
    return "kith1/" + digest.hex.prefix(32)
  }
}

/// The name of an object on a carrier: 8 random bytes, then 8 bytes by which members of an epoch
/// recognise it and its kind. Nobody else can make a name (`Docs/Protocol/carriers.md`).
package struct ObjectName: Hashable, Comparable, Sendable, CustomStringConvertible {
  package enum Kind: UInt8 {
    case parcel = 1
    case handover = 2
  }

  package let digest: Digest128

  package init(_ digest: Digest128) {
    self.digest = digest
  }

  /// Nil unless it is 32 hexadecimal digits in lower case, as a carrier lists it.
  package init?(_ text: String) {
    guard let digest = Digest128(hex: text), digest.hex == text else { return nil }
    self.digest = digest
  }

  package init(_ kind: Kind, of epoch: EpochKeys, entropy: inout some Entropy) {
    let random = Array(entropy.draw(Digest128.self).bytes.prefix(8))
    guard let digest = try? Digest128(random + Self.mark(of: random, kind, epoch)) else {
      preconditionFailure("a name has 16 bytes")
    }
    self.digest = digest
  }

  var bytes: [UInt8] { digest.bytes }
  package var description: String { digest.hex }

  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }

  /// The epoch and the kind that the name tells; nil if none of the epochs made it.
  ///
  /// - Complexity: two keyed digests for each epoch.
  func origin(among epochs: [EpochKeys]) -> (epoch: EpochKeys, kind: Kind)? {
    let (random, mark) = (Array(bytes.prefix(8)), Array(bytes.suffix(8)))
    for epoch in epochs {
      for kind in [Kind.parcel, .handover] where Self.mark(of: random, kind, epoch) == mark {
        return (epoch, kind)
      }
    }
    return nil
  }

  private static func mark(of random: [UInt8], _ kind: Kind, _ epoch: EpochKeys) -> [UInt8] {
    Array(
      Blake2b.keyed128(random + [kind.rawValue], key: epoch.carrierNameKey).bytes.prefix(8))
  }
}
