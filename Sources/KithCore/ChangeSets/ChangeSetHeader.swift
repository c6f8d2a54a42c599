package import KithCrypto

/// One database of a device; its change sets of a store form a chain.
package struct ChainID: Hashable, Comparable, Sendable {
  package var device: DeviceID
  package var incarnation: Incarnation

  package init(device: DeviceID, incarnation: Incarnation) {
    self.device = device
    self.incarnation = incarnation
  }

  package static func < (left: Self, right: Self) -> Bool {
    left.device != right.device
      ? left.device < right.device : left.incarnation < right.incarnation
  }
}

/// The signed part of a change set (`Docs/Protocol.md`, "Entries and change sets").
package struct ChangeSetHeader: Hashable, Sendable {
  /// The only format so far.
  static let format: UInt32 = 1

  package var storeTag: Digest128
  package var epoch: EpochID
  package var chain: ChainID
  package var sequence: UInt64
  package var clock: HybridTime
  package var noncePrefix: NoncePrefix
  /// The BLAKE2b-256 of each sealed entry, by index.
  package var entryDigests: [Digest256]

  package enum Problem: Error, Hashable {
    /// Not a valid header: no honest device relays it.
    case malformed
    /// From a newer version, with digests of so many entries: it cannot be judged yet.
    case unknownFormat(ChainID, entries: Int)
  }

  package init(
    storeTag: Digest128, epoch: EpochID, chain: ChainID, sequence: UInt64, clock: HybridTime,
    noncePrefix: NoncePrefix, entryDigests: [Digest256]
  ) {
    self.storeTag = storeTag
    self.epoch = epoch
    self.chain = chain
    self.sequence = sequence
    self.clock = clock
    self.noncePrefix = noncePrefix
    self.entryDigests = entryDigests
  }

  package init(decoding bytes: [UInt8]) throws(Problem) {
    guard MessageOutline.header.permits(bytes),
      let wire = try? WireChangeSetHeader(serializedBytes: bytes),
      let chain = ChainID(device: wire.device, incarnation: wire.incarnation)
    else { throw .malformed }
    guard wire.format == Self.format else {
      throw .unknownFormat(chain, entries: wire.entryDigests.count)
    }
    guard let storeTag = try? Digest128(wire.storeTag),
      let epoch = try? Digest256(wire.epoch),
      let noncePrefix = try? NoncePrefix(wire.noncePrefix),
      (1...Limits.sequence).contains(wire.sequence)
    else { throw .malformed }
    var digests: [Digest256] = []
    for digest in wire.entryDigests {
      guard let digest = try? Digest256(digest) else { throw .malformed }
      digests.append(digest)
    }
    let clock = HybridTime(rawValue: wire.clock)
    // In any generation, by members, joiners and readers of carriers alike: a member that kept it
    // would keep out every device that does not.
    guard clock.isPossible else { throw .malformed }
    self.init(
      storeTag: storeTag, epoch: EpochID(epoch), chain: chain, sequence: wire.sequence,
      clock: clock, noncePrefix: noncePrefix, entryDigests: digests)
  }

  package func encoded() -> [UInt8] {
    var wire = WireChangeSetHeader()
    wire.format = Self.format
    wire.storeTag = .init(storeTag.bytes)
    wire.epoch = .init(epoch.bytes)
    wire.device = .init(chain.device.bytes)
    wire.incarnation = chain.incarnation.rawValue
    wire.sequence = sequence
    wire.clock = clock.rawValue
    wire.noncePrefix = .init(noncePrefix.bytes)
    wire.entryDigests = entryDigests.map { .init($0.bytes) }
    return wire.encodedBytes()
  }

  package static func signedBytes(account: AccountID, header: [UInt8]) -> [UInt8] {
    domain + account.bytes + header
  }

  private static let domain = Array("kith change set v1\0".utf8)
}
