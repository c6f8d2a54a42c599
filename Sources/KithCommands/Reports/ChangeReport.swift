import Kith
import KithTerminal

/// The report of `kith watch` on one change.
struct ChangeReport: Sendable {
  private let change: KeyValueStore.Change
  private let items: [KeyValueStore.Change.Item]

  /// Nil if the change concerns none of the keys. No keys mean all.
  init?(_ change: KeyValueStore.Change, keys: Set<KeyValueStore.Key> = []) {
    items =
      keys.isEmpty ? change.items : change.items.filter { keys.contains($0.key) }
    if items.isEmpty { return nil }
    self.change = change
  }

  /// A line for each key.
  func text(_ style: Style) -> String {
    items.map { item in
      let key = style(.strong, Columns.printable(item.key.text))
      let reason = change.reason == .ownWrite ? "" : style(.faint, "  (\(words))")
      guard let new = item.new else { return "\(key) \(style(.warning, "removed"))\(reason)" }
      return "\(key) = \(Columns.printable(ValueText.text(new)))\(reason)"
    }
    .joined(separator: "\n")
  }

  private var words: String {
    switch change.reason {
    case .ownWrite: "written here"
    case .externalChange: "from another device"
    case .initialSyncChange: "first sync"
    case .quotaViolationChange: "quota"
    case .accountChange: "another account"
    }
  }

  var document: Document {
    .versioned([
      "changes": .list(
        items.map { item in
          .object([
            "key": .string(item.key.text), "removed": .bool(item.new == nil),
            "value": item.new.map { .value($0) },
          ])
        }),
      "joined": change.isJoined ? .bool(true) : nil,
      "reason": .string(change.reason.rawValue),
    ])
  }
}
