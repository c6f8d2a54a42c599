internal import KithCore

/// The claim and fallback of a write, from the values shown before it (`Docs/Protocol.md`, "Writing
/// and publishing"). Shares no code with the product.
enum ReferenceForm {
  /// Returns the claim of all values of a transaction. A new claim belongs to a future publishing,
  /// in the group of `laid`.
  static func claim(
    of draft: LocalWrite, over before: StoreInspection, by device: DeviceID,
    _ laid: Entry
  ) -> Claim {
    let unpublished = Claim(
      clock: HybridTime(rawValue: .max), device: device, group: laid.claim.group)
    var replaced: [Claim] = []
    for operation in draft.operations {
      guard let value = operation.value else { continue }
      guard let shown = before.shown[Key(operation.key)],
        value.bytes.count <= shown.value.bytes.count,
        let standing = standing(of: Key(operation.key), in: before)
      else { return unpublished }
      replaced.append(standing.claim)
    }
    return replaced.max() ?? unpublished
  }

  /// Returns the shown value, if its claim is earlier and published; otherwise that value's own
  /// fallback.
  static func fallback(of laid: Entry, over before: StoreInspection) -> Fallback? {
    guard laid.value != nil, let shown = before.shown[laid.key],
      let standing = standing(of: laid.key, in: before)
    else { return nil }
    let isPublished = standing.claim.clock.rawValue != .max
    return standing.claim < laid.claim && isPublished
      ? Fallback(value: shown.value, claim: standing.claim) : standing.fallback
  }

  private static func standing(
    of key: Key, in seen: StoreInspection
  ) -> (claim: Claim, fallback: Fallback?)? {
    let newest = seen.drafted[key] ?? seen.slots[key]?.first?.entry
    let kept = seen.slots[key] ?? []
    let runnerUp = seen.drafted[key] == nil && kept.count > 1 ? kept[1].entry : nil
    return switch seen.shown[key]?.step {
    case .value: newest.map { ($0.claim, $0.fallback) }
    case .fallback: newest?.fallback.map { ($0.claim, nil) }
    case .runnerUp: runnerUp.map { ($0.claim, $0.fallback) }
    case .runnerUpFallback: runnerUp?.fallback.map { ($0.claim, nil) }
    case nil: nil
    }
  }
}
