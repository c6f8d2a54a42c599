/// What a key showed before a write replaced it, carried inside the entry (`Docs/Glossary.md`).
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
  /// What a write leaves behind.
  public enum Content: Hashable, Sendable {
    /// The key holds this value.
    case value(EncodedValue)
    /// The key holds nothing.
    case removed
  }

  /// The key written.
  public let key: Key
  /// When it was written.
  public let stamp: Stamp
  /// What was written.
  public let content: Content
  /// When its room was claimed.
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
