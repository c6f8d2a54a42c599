/// The shown value that a write replaced, kept in the write's entry (`Docs/Glossary.md`).
package struct Fallback: Hashable, Sendable {
  package let value: EncodedValue
  /// The claim under which the value was shown.
  package let claim: Claim

  package init(value: EncodedValue, claim: Claim) {
    self.value = value
    self.claim = claim
  }
}

package struct Entry: Hashable, Sendable {
  package enum Content: Hashable, Sendable {
    case value(EncodedValue)
    case removed
  }

  package let key: Key
  package let stamp: Stamp
  package let content: Content
  package let claim: Claim
  /// The stamp of the key's newest published entry that the author knew.
  package let replaced: Stamp?
  package let fallback: Fallback?

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

  package var value: EncodedValue? {
    if case .value(let value) = content { value } else { nil }
  }

  package var isRemoval: Bool { content == .removed }
}
