/// The value that a key showed before a write replaced it, carried inside the entry
/// (`Docs/Glossary.md`).
public struct Fallback: Hashable, Sendable {
  /// The value that was shown.
  public let value: EncodedValue
  /// The claim under which it was shown.
  public let claim: Claim

  /// Makes a fallback.
  public init(value: EncodedValue, claim: Claim) {
    self.value = value
    self.claim = claim
  }
}

/// One write of one key: a value, or removed.
public struct Entry: Hashable, Sendable {
  /// The content of a write.
  public enum Content: Hashable, Sendable {
    /// The key holds this value.
    case value(EncodedValue)
    /// The key is removed.
    case removed
  }

  /// The key written.
  public let key: Key
  /// The time and the device of the write.
  public let stamp: Stamp
  /// The value written, or the removal.
  public let content: Content
  /// The claim to room in the quota.
  public let claim: Claim
  /// The stamp of the newest published entry of the key that the author knew.
  public let replaced: Stamp?
  /// The shown value that the write replaced.
  public let fallback: Fallback?

  /// Makes an entry.
  public init(
    key: Key, stamp: Stamp, content: Content, claim: Claim, replaced: Stamp? = nil,
    fallback: Fallback? = nil
  ) {
    self.key = key
    self.stamp = stamp
    self.content = content
    self.claim = claim
    self.replaced = replaced
    self.fallback = fallback
  }

  /// The value written, or nil for a removal.
  public var value: EncodedValue? {
    if case .value(let value) = content { value } else { nil }
  }

  /// Whether the write removed its key.
  public var isRemoval: Bool { content == .removed }
}
