internal import KithCrypto

extension Claim {
  /// A draft's publishing clock: later than every real one.
  static let unpublished = HybridTime(rawValue: .max)

  /// Whether it is a draft's claim.
  var isUnpublished: Bool { clock == Self.unpublished }

  func published(at clock: HybridTime) -> Claim {
    isUnpublished ? Claim(clock: clock, device: device, group: group) : self
  }
}

extension StoreState {
  /// Applies a transaction to the drafts as if it were published now, and returns the changed shown
  /// values.
  ///
  /// Returns nil, and changes nothing, if a value of it would not be shown.
  mutating func applyDraft(_ write: LocalWrite, author: DeviceID) -> [ShownChange]? {
    let entries = form(of: write, author: author, group: group)
    let before = entries.map { drafted[$0.entry.key] }
    for entry in entries { setDraft(entry, of: entry.entry.key) }
    let changes = refresh(write.keys)
    if isShown(entries) {
      group += 1
      return changes
    }
    for (entry, old) in zip(entries, before) { setDraft(old, of: entry.entry.key) }
    _ = refresh(write.keys)
    return nil
  }

  /// Replaces all drafts by transactions with different keys, each as if it were published without
  /// the others (`Docs/Protocol/drafts.md`, "Re-checking").
  ///
  /// - Returns: Those of which a value is not shown.
  mutating func replaceDrafts(with writes: [LocalWrite], author: DeviceID) -> [LocalWrite] {
    removeDrafts()
    let forms = writes.enumerated().map { number, write in
      form(of: write, author: author, group: UInt32(number))
    }
    for entry in forms.joined() { setDraft(entry, of: entry.entry.key) }
    group = UInt32(writes.count)
    _ = refresh(drafted.keys)
    return zip(writes, forms).filter { !isShown($1) }.map(\.0)
  }

  private func isShown(_ entries: [KeptEntry]) -> Bool {
    entries.allSatisfy { $0.entry.isRemoval || shown[$0.entry.key]?.step == .value }
  }

  /// Whether an operation would be its key's newest entry, once published.
  func isNewest(_ operation: Operation, writtenAt clock: HybridTime, by author: DeviceID) -> Bool {
    guard let slot = slots[Key(operation.key)] else { return true }
    // Merging compares neither claims nor fallbacks. The least digest lets a tie count as lost.
    let claim = Claim(clock: Claim.unpublished, device: author, group: 0)
    let stamp = Stamp(clock: clock, device: author)
    return KeptEntry.isOlder(slot.newest, than: entry(of: operation, stamp, claim))
  }

  /// The entries that a transaction would publish now.
  private func form(of write: LocalWrite, author: DeviceID, group: UInt32) -> [KeptEntry] {
    let claim = claim(of: write, author: author, group: group)
    let stamp = Stamp(clock: write.clock, device: author)
    return write.operations.map { operation in
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
    return KeptEntry(entry: entry, digest: .zero, location: nil)
  }

  /// A new claim if a value grows its key; otherwise the latest claim that the transaction
  /// replaces.
  private func claim(of write: LocalWrite, author: DeviceID, group: UInt32) -> Claim {
    let new = Claim(clock: Claim.unpublished, device: author, group: group)
    var latest: Claim?
    for operation in write.operations {
      guard let value = operation.value else { continue }
      let key = Key(operation.key)
      guard let shown = shown[key], value.size <= shown.value.size,
        let current = slot(key)?.claimAndFallback(of: shown.step)
      else { return new }
      latest = max(latest ?? current.claim, current.claim)
    }
    return latest ?? new
  }

  private func fallback(of key: Key, claimedAt claim: Claim) -> Fallback? {
    guard let shown = shown[key], let current = slot(key)?.claimAndFallback(of: shown.step) else {
      return nil
    }
    // If the value's claim is equal, or of this publishing, its own fallback is taken.
    guard current.claim < claim, !current.claim.isUnpublished else { return current.fallback }
    return Fallback(value: shown.value, claim: current.claim)
  }

  private mutating func removeDrafts() {
    let keys = Array(drafted.keys)
    for key in keys { setDraft(nil, of: key) }
    _ = refresh(keys)
  }
}

extension Digest256 {
  /// For entries without a digest.
  static let zero = Digest256 { $0.initializeMemory(as: UInt8.self, repeating: 0) }
}
