internal import FoundationEssentials
internal import KithCrypto
internal import SwiftProtobuf

// A message is accepted whole or not at all: a wrong length, number or order fails decoding and
// ends the session. This covers all faults that show without a state and without opening a box.
// Members that keep the rules decode alike, so none relays such a message.

extension Sequence {
  /// Whether keys ascend without repeats, as in every list that encodes a map or set.
  func isStrictlyAscending<Key: Comparable>(by key: (Element) -> Key) -> Bool {
    var last: Key?
    for element in self {
      let next = key(element)
      if let last, last >= next { return false }
      last = next
    }
    return true
  }
}

extension [ChainID: UInt64] {
  /// A vector or a part of one; nil if malformed.
  init?(_ wire: [WireVectorEntry]) {
    var entries: [(key: ChainID, value: UInt64)] = []
    entries.reserveCapacity(wire.count)
    for entry in wire {
      guard let chain = ChainID(device: entry.device, incarnation: entry.incarnation),
        (1...Limits.sequence).contains(entry.sequence)
      else { return nil }
      entries.append((chain, entry.sequence))
    }
    guard entries.isStrictlyAscending(by: \.key) else { return nil }
    self.init(uniqueKeysWithValues: entries)
  }
}

extension [DeviceID: [String]] {
  /// Devices' addresses; nil if malformed.
  init?(_ wire: [WireDeviceAddresses]) {
    var entries: [(key: DeviceID, value: [String])] = []
    entries.reserveCapacity(wire.count)
    for entry in wire {
      guard let device = try? DeviceID(entry.device),
        entry.addresses.count <= Limits.addressesPerDevice,
        entry.addresses.allSatisfy(Limits.isAddress)
      else { return nil }
      entries.append((device, entry.addresses))
    }
    guard entries.isStrictlyAscending(by: \.key) else { return nil }
    self.init(uniqueKeysWithValues: entries)
  }
}

extension Limits {
  /// Whether a text may be an address: 1 to 262 printable bytes without a space.
  static func isAddress(_ text: String) -> Bool {
    (1...addressBytes).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
  }
}

extension FixedBytes {
  /// Reads a message's bytes in place. The initializer for any collection is not specialized here,
  /// and takes about 1,000 instructions.
  init(_ bytes: Data) throws(CryptoError) {
    guard bytes.count == Self.byteCount else {
      throw .wrongLength(expected: Self.byteCount, actual: bytes.count)
    }
    self.init(storage: bytes.withUnsafeBytes { $0.loadUnaligned(as: Storage.self) })
  }
}

extension ChainID {
  init?(device: Data, incarnation: UInt64) {
    guard let device = try? DeviceID(device) else { return nil }
    self.init(device: device, incarnation: Incarnation(rawValue: incarnation))
  }
}

extension SwiftProtobuf.Message {
  /// Encoding fails only for required fields and `Any`, which kith.proto does not use.
  func encodedBytes() -> [UInt8] {
    do {
      return try serializedBytes()
    } catch {
      preconditionFailure("a kith.v1 message cannot be encoded: \(error)")
    }
  }
}
