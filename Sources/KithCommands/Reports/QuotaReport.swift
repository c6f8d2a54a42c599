import Kith
import KithTerminal

/// The report of `kith quota`.
struct QuotaReport: Equatable, Sendable {
  struct Item: Equatable, Sendable {
    var key: String
    var bytes: Int
  }

  var store: NodeStatus.Store
  /// The largest values, largest first.
  var largest: [Item]

  func text(_ style: Style) -> String {
    var table = Table([("", .left), ("USED", .right), ("LIMIT", .right), ("", .right), ("", .left)])
    let (usage, policy) = (store.usage, store.usage.policy)
    table.add(row("bytes", usage.bytes, policy.totalBytes, Humane.bytes))
    table.add(row("keys", usage.keys, policy.keys, Humane.count))
    var lines = [table.text(style)]
    lines.append(
      "A key may have \(Humane.bytes(policy.keyBytes)), "
        + "a value \(Humane.bytes(policy.valueBytes)).")
    if store.hiddenKeys > 0 {
      lines.append(
        style(.warning, "\(Humane.count(store.hiddenKeys, "write")) hidden; see: kith hidden"))
    }
    if store.refusals > 0 {
      lines.append(
        style(
          .warning, "\(Humane.count(store.refusals, "transaction")) refused; see: kith refusals"))
    }
    if !largest.isEmpty {
      var items = Table([("LARGEST", .left), ("SIZE", .right)])
      for item in largest {
        items.add([
          Table.Cell(Columns.printable(item.key)), Table.Cell(Humane.bytes(item.bytes)),
        ])
      }
      lines.append("\n" + items.text(style))
    }
    return lines.joined(separator: "\n")
  }

  private func row(
    _ name: String, _ used: Int, _ limit: Int, _ text: (Int) -> String
  ) -> [Table.Cell] {
    let part = limit > 0 ? min(1, Double(used) / Double(limit)) : 1
    let tone: Style.Tone = part >= 0.9 ? .bad : part >= 0.75 ? .warning : .good
    let filled = Int((part * 20).rounded(.up))
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 20 - filled)
    return [
      Table.Cell(name, .faint), Table.Cell(text(used)), Table.Cell(text(limit)),
      Table.Cell(Humane.percent(used, of: limit), tone), Table.Cell(bar, tone),
    ]
  }

  var document: Document {
    .versioned([
      "hiddenKeys": .int(store.hiddenKeys),
      "largest": .list(largest.map { .object(["bytes": .int($0.bytes), "key": .string($0.key)]) }),
      "refusals": .int(store.refusals), "store": .string(store.identifier.rawValue),
      "usage": .of(store.usage),
    ])
  }
}
