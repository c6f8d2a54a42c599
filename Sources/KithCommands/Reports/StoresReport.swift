import Kith
import KithTerminal

/// The report of `kith stores`, also a part of `kith status`.
struct StoresReport: Equatable, Sendable {
  var status: NodeStatus
  var showsEmpty: Bool

  var shown: [NodeStatus.Store] { status.stores.filter { showsEmpty || !$0.isEmpty } }

  func text(_ style: Style) -> String {
    guard !shown.isEmpty else { return "" }
    var table = Table([
      ("STORE", .cut), ("KEYS", .right), ("SIZE", .right), ("USED", .right), ("ON", .right),
      ("REMARKS", .wrapped),
    ])
    for store in shown {
      let usage = store.usage
      table.add([
        Table.Cell(Columns.printable(store.identifier.rawValue)),
        Table.Cell("\(Format.count(usage.keys))/\(Format.count(usage.policy.keys))"),
        Table.Cell("\(Format.bytes(usage.bytes))/\(Format.bytes(usage.policy.totalBytes))"),
        Table.Cell(Format.percent(usage.bytes, of: usage.policy.totalBytes)),
        Table.Cell("\(store.heldBy.count + 1)/\(status.others.count + 1)"),
        Table.Cell(store.remarks { status.name(of: $0) }, .warning),
      ])
    }
    return table.text(style)
  }

  /// All stores, as in `status`.
  var document: Document { .versioned(["stores": .list(status.stores.map(Document.of))]) }
}

extension NodeStatus.Store {
  /// Removals that wait to be published do not count.
  fileprivate var isEmpty: Bool {
    usage.keys == 0 && hiddenKeys == 0 && refusals == 0 && missing == nil
  }
}
