/// The value that a key showed before a write replaced it, inside the entry (`Docs/Glossary.md`).
package struct Fallback: Hashable, Sendable {
  /// The value that was shown.
  package let value: EncodedValue
  /// The claim under which it was shown.
  package let claim: Claim

  /// Makes a fallback.
  package init(value: EncodedValue, claim: Claim) {
    self.value = value
    self.claim = claim
  }
}

/// One write of one key: a value, or removed.
package struct Entry: Hashable, Sendable {
  /// The content of a write.
  package enum Content: Hashable, Sendable {
    /// The key holds this value.
    case value(EncodedValue)
    /// The key is removed.
    case removed
  }

  /// The key written.
  package let key: Key
  /// The time and the device of the write.
  package let stamp: Stamp
  /// The value written, or the removal.
  package let content: Content
  /// The claim to quota.
  package let claim: Claim
  /// The stamp of the newest published entry of the key that the author knew.
  package let replaced: Stamp?
  /// The shown value that the write replaced.
  package let fallback: Fallback?

  /// Makes an entry.
  package init(
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
  package var value: EncodedValue? {
    if case .value(let value) = content { value } else { nil }
  }

  /// Whether the write removed its key.
  package var isRemoval: Bool { content == .removed }
}
