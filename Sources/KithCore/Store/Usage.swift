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

/// The numbers of a quota refusal.
package struct QuotaNumbers: Hashable, Sendable {
  /// Bytes shown if the write were accepted.
  package var askedBytes: Int
  /// The most bytes.
  package var limitBytes: Int
  /// Keys shown if the write were accepted.
  package var askedKeys: Int
  /// The most keys.
  package var limitKeys: Int

  package init(askedBytes: Int, limitBytes: Int, askedKeys: Int, limitKeys: Int) {
    self.askedBytes = askedBytes
    self.limitBytes = limitBytes
    self.askedKeys = askedKeys
    self.limitKeys = limitKeys
  }
}
