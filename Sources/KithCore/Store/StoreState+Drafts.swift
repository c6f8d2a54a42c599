internal import KithCrypto

extension Claim {
  /// Stands for the publishing clock that a draft does not have yet; later than every real one.
  static let unpublished = HybridTime(rawValue: .max)

  /// Whether the room was claimed by a draft, in the publishing that is still to come.
  var isUnpublished: Bool { clock == Self.unpublished }

  /// The claim as it is published.
  func published(at clock: HybridTime) -> Claim {
    isUnpublished ? Claim(clock: clock, device: device, group: group) : self
  }
}

/// The fate of a draft after the published entries changed. Operations that lost to a later write
/// are not part of the rest.
enum DraftFate: Equatable {
  /// The rest of it stands.
  case stands(Draft)
  /// All its operations lost to later writes.
  case superseded
  /// Room is short, so the rest of it would not be shown whole; or it is an adopted draft that lost
  /// a key, and is refused whole.
  case refused(Draft, Refusal.Reason)
}

extension StoreState {
  /// Lays a draft over the state in the form in which it would be published now, if it stands.
  ///
  /// Returns the keys whose shown value changed, or nil if a value of the draft would not be shown;
  /// then nothing has changed.
  mutating func lay(
    _ draft: Draft, author: DeviceID
  ) -> [(key: Key, value: EncodedValue?)]? {
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

  /// Lays a draft anew over the drafts before it, after the published entries changed
  /// (`Docs/Protocol.md`, "Writing and publishing").
  mutating func layAnew(_ draft: Draft, author: DeviceID) -> DraftFate {
    let stamp = Stamp(clock: draft.clock, device: author)
    var rest = draft
    rest.operations.removeAll { operation in
      slots[Key(operation.key)].map { stamp < $0.newest.entry.stamp } ?? false
    }
    if draft.clock.isAdopted, rest != draft { return .refused(draft, .initialSync) }
    guard !rest.operations.isEmpty else { return .superseded }
    return lay(rest, author: author) == nil ? .refused(rest, .quota) : .stands(rest)
  }

  /// The entries that a draft would publish now (`Docs/Protocol.md`, "Writing and publishing").
  private func form(of draft: Draft, author: DeviceID) -> [KeptEntry] {
    let claim = claim(of: draft, author: author)
    return draft.operations.map { operation in
      let key = Key(operation.key)
      let entry = Entry(
        key: key, stamp: Stamp(clock: draft.clock, device: author),
        content: operation.value.map(Entry.Content.value) ?? .removed, claim: claim,
        replaced: slots[key]?.newest.entry.stamp,
        fallback: operation.value == nil ? nil : fallback(of: key, claimedAt: claim))
      // A draft has no plaintext yet; its digest is never compared.
      return KeptEntry(entry: entry, digest: .zero, home: nil)
    }
  }

  /// If any value grows its key, the transaction claims room anew; otherwise it keeps the latest
  /// claim among the values it replaces.
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
    // A value is no fallback if its claim is equal or made in this same publishing. Its own
    // fallback is taken instead.
    guard standing.claim < claim, !standing.claim.isUnpublished else { return standing.fallback }
    return Fallback(value: shown.value, claim: standing.claim)
  }

  /// Takes all drafts away. Call ``layAnew(_:author:)`` for those that are to stand again.
  mutating func removeDrafts() {
    let keys = Array(drafted.keys)
    for key in keys { setDraft(nil, of: key) }
    _ = refresh(keys)
  }
}

extension Digest256 {
  /// Thirty-two zero bytes, for an entry that has no digest.
  static let zero = Digest256 { $0.initializeMemory(as: UInt8.self, repeating: 0) }
}
