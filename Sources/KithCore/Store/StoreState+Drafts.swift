internal import KithCrypto

extension Claim {
  /// A draft's publishing clock: later than every real one.
  static let unpublished = HybridTime(rawValue: .max)

  /// Whether a draft claims the room.
  var isUnpublished: Bool { clock == Self.unpublished }

  func published(at clock: HybridTime) -> Claim {
    isUnpublished ? Claim(clock: clock, device: device, group: group) : self
  }
}

/// A draft's fate after published entries changed. Its rest excludes operations that lost to later
/// writes.
enum DraftFate: Equatable {
  case stands(Draft)
  /// All its operations lost to later writes.
  case superseded
  /// The rest does not fit; or the draft is adopted, lost a key, and is refused whole.
  case refused(Draft, Refusal.Reason)
}

extension StoreState {
  /// Lays a draft as it would be published now, and returns the changed shown values.
  ///
  /// Returns nil, and changes nothing, if a value of the draft would not be shown.
  mutating func lay(
    _ draft: Draft, author: DeviceID
  ) -> [ShownChange]? {
    let entries = form(of: draft, author: author)
    let keys = entries.map(\.entry.key)
    let before = keys.map { drafted[$0] }
    for entry in entries { setDraft(entry, of: entry.entry.key) }
    let changes = refresh(keys)
    let stands = entries.allSatisfy { entry in
      entry.entry.isRemoval || shown[entry.entry.key]?.step == .value
    }
    if stands {
      group += 1
      return changes
    }
    for (key, entry) in zip(keys, before) { setDraft(entry, of: key) }
    _ = refresh(keys)
    return nil
  }

  /// Lays a draft anew over the drafts before it (`Docs/Protocol/drafts.md`, "Re-checking").
  mutating func layAnew(_ draft: Draft, author: DeviceID) -> DraftFate {
    let stamp = Stamp(clock: draft.clock, device: author)
    var rest = draft
    // Merging compares neither claims nor fallbacks. The least digest lets a tie count as lost.
    let claim = Claim(clock: Claim.unpublished, device: author, group: group)
    rest.operations.removeAll { operation in
      guard let slot = slots[Key(operation.key)] else { return false }
      return !KeptEntry.isOlder(slot.newest, than: entry(of: operation, stamp, claim))
    }
    if draft.clock.isAdopted, rest != draft { return .refused(draft, .initialSync) }
    guard !rest.operations.isEmpty else { return .superseded }
    return lay(rest, author: author) == nil ? .refused(rest, .quota) : .stands(rest)
  }

  /// The entries that a draft would publish now.
  private func form(of draft: Draft, author: DeviceID) -> [KeptEntry] {
    let claim = claim(of: draft, author: author)
    let stamp = Stamp(clock: draft.clock, device: author)
    return draft.operations.map { operation in
      let fallback =
        operation.value == nil ? nil : fallback(of: Key(operation.key), claimedAt: claim)
      return entry(of: operation, stamp, claim, fallback: fallback)
    }
  }

  /// It has no plaintext yet, and no digest.
  private func entry(
    of operation: Operation, _ stamp: Stamp, _ claim: Claim, fallback: Fallback? = nil
  ) -> KeptEntry {
    let key = Key(operation.key)
    let entry = Entry(
      key: key, stamp: stamp, content: operation.value.map(Entry.Content.value) ?? .removed,
      claim: claim, replaced: slots[key]?.newest.entry.stamp, fallback: fallback)
    return KeptEntry(entry: entry, digest: .zero, home: nil)
  }

  /// Claims room anew if a value grows its key; else keeps the latest claim that it replaces.
  private func claim(of draft: Draft, author: DeviceID) -> Claim {
    let new = Claim(clock: Claim.unpublished, device: author, group: group)
    var latest: Claim?
    for operation in draft.operations {
      guard let value = operation.value else { continue }
      let key = Key(operation.key)
      guard let shown = shown[key], value.size <= shown.value.size,
        let standing = slot(key)?.standing(of: shown.step)
      else { return new }
      latest = max(latest ?? standing.claim, standing.claim)
    }
    return latest ?? new
  }

  private func fallback(of key: Key, claimedAt claim: Claim) -> Fallback? {
    guard let shown = shown[key], let standing = slot(key)?.standing(of: shown.step) else {
      return nil
    }
    // If the value's claim is equal, or of this publishing, its own fallback is taken.
    guard standing.claim < claim, !standing.claim.isUnpublished else { return standing.fallback }
    return Fallback(value: shown.value, claim: standing.claim)
  }

  mutating func removeDrafts() {
    let keys = Array(drafted.keys)
    for key in keys { setDraft(nil, of: key) }
    _ = refresh(keys)
  }
}

extension Digest256 {
  /// For entries without a digest.
  static let zero = Digest256 { $0.initializeMemory(as: UInt8.self, repeating: 0) }
}
