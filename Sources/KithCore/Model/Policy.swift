/// A store's limits (`Docs/Glossary.md`).
///
/// Peers with different policies for a store do not sync it.
public struct Policy: Codable, Hashable, Sendable {
  /// The maximum size of all shown values together, in encoded bytes.
  public var totalBytes: Int
  /// The maximum number of shown keys.
  public var keys: Int
  /// The maximum length of a key, in bytes of UTF-8.
  public var keyBytes: Int
  /// The maximum size of a value, in encoded bytes.
  public var valueBytes: Int

  /// The standard limits: 1,048,576 bytes in all and for a value, 1,024 keys, 64 bytes for a key.
  public static let standard = Self()

  /// The largest policy that a node accepts; it bounds one store's memory.
  public static let maximum = Self(
    totalBytes: 16 << 20, keys: 65_536, keyBytes: 1_024, valueBytes: 2 << 20)

  /// Makes a policy; the defaults are those of `Docs/Protocol.md`.
  public init(
    totalBytes: Int = 1 << 20, keys: Int = 1_024, keyBytes: Int = 64, valueBytes: Int = 1 << 20
  ) {
    self.totalBytes = totalBytes
    self.keys = keys
    self.keyBytes = keyBytes
    self.valueBytes = valueBytes
  }

  package var isWithinBounds: Bool {
    let most = Self.maximum
    return (0...most.totalBytes).contains(totalBytes) && (0...most.keys).contains(keys)
      && (0...most.keyBytes).contains(keyBytes) && (0...most.valueBytes).contains(valueBytes)
  }

  /// Returns whether a value and key of these sizes could ever be shown.
  func permits(keyBytes: Int, valueBytes: Int) -> Bool {
    keyBytes <= self.keyBytes && valueBytes <= self.valueBytes
  }
}

/// The bytes and keys that a store shows, and its limits.
public struct Usage: Codable, Hashable, Sendable {
  /// The encoded bytes of the values shown.
  public var bytes: Int
  /// The number of keys shown.
  public var keys: Int
  /// The limits.
  public var policy: Policy

  package init(bytes: Int, keys: Int, policy: Policy) {
    self.bytes = bytes
    self.keys = keys
    self.policy = policy
  }
}

extension Policy {
  package var row: [UInt8] { [totalBytes, keys, keyBytes, valueBytes].flatMap { UInt64($0).row } }

  package init?(row: [UInt8]) {
    var bytes = RowBytes(row)
    let numbers = (0..<4).map { _ in Int(clamping: bytes.number(bytes: 8)) }
    guard bytes.isExact else { return nil }
    self.init(
      totalBytes: numbers[0], keys: numbers[1], keyBytes: numbers[2], valueBytes: numbers[3])
  }
}
