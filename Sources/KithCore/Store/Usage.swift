public import KithCrypto

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

/// A newest write that the quota hides. It is kept, and shown again when it fits
/// (`Docs/Protocol.md`, "What is shown").
public struct HiddenEntry: Hashable, Sendable {
  /// The key.
  public var key: String
  /// The value that is hidden.
  public var value: PropertyListValue
  /// The value's size as the quota counts it, in bytes.
  public var bytes: Int
  /// The device that wrote it.
  public var device: DeviceID
  /// The time of the write, in milliseconds since 1970.
  public var writtenMilliseconds: UInt64

  package init(
    key: String, value: PropertyListValue, bytes: Int, device: DeviceID, writtenMilliseconds: UInt64
  ) {
    self.key = key
    self.value = value
    self.bytes = bytes
    self.device = device
    self.writtenMilliseconds = writtenMilliseconds
  }
}
