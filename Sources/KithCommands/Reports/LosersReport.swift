import Foundation
import Kith
import KithTerminal

/// Newest writes that the quota hides: `kith hidden`.
struct HiddenReport: Sendable {
  var store: String
  var entries: [KeyValueStore.HiddenEntry]
  /// Has the devices' names.
  var status: NodeStatus

  func text(_ style: Style) -> String {
    var table = Table([
      ("KEY", .left), ("SIZE", .right), ("WRITTEN BY", .left), ("WRITTEN", .left), ("VALUE", .left),
    ])
    for entry in entries {
      table.add([
        Table.Cell(Columns.printable(entry.key), .strong),
        Table.Cell(Humane.bytes(entry.bytes)), Table.Cell(status.name(of: entry.device)),
        Table.Cell(Moment.text(entry.writtenMilliseconds)),
        Table.Cell(Columns.printable(ValueText.text(entry.value), limit: 32)),
      ])
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "hidden": .list(
        entries.map { entry in
          .object([
            "bytes": .int(entry.bytes), "device": .string(entry.device.hex),
            "key": .string(entry.key), "value": .value(entry.value),
            "writtenMilliseconds": .int(entry.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }
}

/// Transactions accepted offline that did not fit later: `kith refusals`.
struct RefusalsReport: Sendable {
  var store: String
  var refusals: [KeyValueStore.Refusal]

  func text(_ style: Style) -> String {
    var table = Table([
      ("NO", .right), ("WHY", .left), ("WRITTEN", .left), ("KEY", .left), ("SIZE", .right),
      ("VALUE", .left),
    ])
    for item in refusals {
      for (index, write) in item.writes.enumerated() {
        let isFirst = index == 0
        table.add([
          Table.Cell(isFirst ? "\(item.number)" : ""),
          Table.Cell(isFirst ? "\(item.reason)" : "", .warning),
          Table.Cell(isFirst ? Moment.text(item.writtenMilliseconds) : ""),
          Table.Cell(Columns.printable(write.key), .strong),
          Table.Cell(item.operations[index].value.map { Humane.bytes($0.size) } ?? ""),
          write.value.map { Table.Cell(Columns.printable(ValueText.text($0), limit: 32)) }
            ?? Table.Cell("removed", .faint),
        ])
      }
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "refusals": .list(
        refusals.map { item in
          .object([
            "number": .int(item.number),
            "operations": .list(
              item.writes.map { write in
                .object([
                  "key": .string(write.key), "removed": .bool(write.value == nil),
                  "value": write.value.map { .value($0) },
                ])
              }),
            "reason": .string("\(item.reason)"),
            "writtenMilliseconds": .int(item.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }
}

enum Moment {
  /// In UTC, to the second.
  static func text(_ milliseconds: UInt64) -> String {
    let seconds = Double(milliseconds / 1_000)
    return ISO8601Text.text(Date(timeIntervalSince1970: seconds)) ?? "\(milliseconds)"
  }

  /// Milliseconds since 1970.
  static var now: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
}
