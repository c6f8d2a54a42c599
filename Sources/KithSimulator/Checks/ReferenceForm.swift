internal import KithCore

/// The claim and fallback of a write, from the values shown before it (`Docs/Protocol.md`, "Writing
/// and publishing"). Shares no code with the product.
enum ReferenceForm {
  /// Returns the claim of all values of a transaction. A new claim belongs to a future publishing,
  /// in the group of `applied`.
  static func claim(
    of draft: LocalWrite, over before: StoreInspection, by device: DeviceID,
    _ applied: Entry
  ) -> Claim {
    let unpublished = Claim(
      clock: HybridTime(rawValue: .max), device: device, group: applied.claim.group)
    var replaced: [Claim] = []
    for operation in draft.operations {
      guard let value = operation.value else { continue }
      guard let shown = before.shown[Key(operation.key)],
        value.bytes.count <= shown.value.bytes.count,
        let current = current(of: Key(operation.key), in: before)
      else { return unpublished }
      replaced.append(current.claim)
    }
    return replaced.max() ?? unpublished
  }

  /// Returns the shown value, if its claim is earlier and published; otherwise that value's own
  /// fallback.
  static func fallback(of applied: Entry, over before: StoreInspection) -> Fallback? {
    guard applied.value != nil, let shown = before.shown[applied.key],
      let current = current(of: applied.key, in: before)
    else { return nil }
    let isPublished = current.claim.clock.rawValue != .max
    return current.claim < applied.claim && isPublished
      ? Fallback(value: shown.value, claim: current.claim) : current.fallback
  }

  private static func current(
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
