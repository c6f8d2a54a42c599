import FoundationEssentials
import Kith
import KithTerminal
import KithValues

/// The report of `kith stores`, also a part of `kith status`.
struct StoresReport: Equatable, Sendable {
  var status: NodeStatus
  var showsEmpty: Bool

  var shown: [NodeStatus.Store] { status.stores.filter { showsEmpty || !$0.isEmpty } }

  func text(_ style: Style) -> String {
    guard !shown.isEmpty else { return "" }
    var table = Table([
      ("STORE", .whole), ("KEYS", .right), ("SIZE", .right), ("USED", .right), ("ON", .right),
      ("REMARKS", .wrapped),
    ])
    for store in shown {
      let usage = store.usage
      table.add([
        Table.Cell(Columns.printable(store.identifier.rawValue)),
        Table.Cell("\(Format.count(usage.keys))/\(Format.count(usage.policy.keys))"),
        Table.Cell("\(Format.bytes(usage.bytes))/\(Format.bytes(usage.policy.totalBytes))"),
        Table.Cell(Format.percent(usage.bytes, of: usage.policy.totalBytes)),
        Table.Cell("\(store.upToDateDevices.count + 1)/\(status.others.count + 1)"),
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

/// Writes of a store that it does not show: `kith unshown`.
struct UnshownReport: Sendable {
  var store: String
  /// Newest writes that the quota hides.
  var hidden: [KeyValueStore.HiddenEntry]
  /// Transactions accepted offline that did not fit later.
  var refusals: [KeyValueStore.Refusal]
  /// Has the devices' names.
  var status: NodeStatus

  var isEmpty: Bool { hidden.isEmpty && refusals.isEmpty }

  /// Refused transactions have numbers.
  func text(_ style: Style) -> String {
    var table = Table([
      ("KEY", .whole), ("NO", .right), ("SIZE", .right), ("WRITTEN BY", .cut),
      ("WRITTEN", .left), ("VALUE", .cut), ("WHY", .wrapped),
    ])
    let limit = style.columns ?? .max
    for entry in hidden {
      table.add([
        Table.Cell(Columns.printable(entry.key.text), .strong), "",
        Table.Cell(Format.bytes(entry.bytes)),
        Table.Cell(status.name(of: entry.device)),
        Table.Cell(Moment.text(entry.writtenMilliseconds)),
        Table.Cell(ValueText.shown(entry.value, limit: limit)), "hidden",
      ])
    }
    for item in refusals {
      for (write, operation) in zip(item.writes, item.operations) {
        table.add([
          Table.Cell(Columns.printable(write.key.text), .strong), Table.Cell("\(item.number)"),
          Table.Cell(operation.value.map { Format.bytes($0.size) } ?? ""),
          Table.Cell("this device"), Table.Cell(Moment.text(item.writtenMilliseconds)),
          write.value.map { Table.Cell(ValueText.shown($0, limit: limit)) }
            ?? Table.Cell("removed", .faint),
          Table.Cell("refused: \(item.reason.words)", .warning),
        ])
      }
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "hidden": .list(
        hidden.map { entry in
          .object([
            "bytes": .int(entry.bytes), "device": .string(entry.device.hex),
            "key": .string(entry.key.text), "value": .value(entry.value),
            "writtenMilliseconds": .int(entry.writtenMilliseconds),
          ])
        }),
      "refusals": .list(
        refusals.map { item in
          .object([
            "number": .int(item.number),
            "operations": .list(
              item.writes.map { write in
                .object([
                  "key": .string(write.key.text), "removed": .bool(write.value == nil),
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

extension KeyValueStore.Refusal.Reason {
  fileprivate var words: String {
    switch self {
    case .quota: "over quota"
    case .initialSync: "the account had the key"
    }
  }
}

package enum Moment {
  /// In UTC, to the second.
  static func text(_ milliseconds: UInt64) -> String {
    let seconds = Double(milliseconds / 1_000)
    return ISO8601Text.text(Date(timeIntervalSince1970: seconds)) ?? "\(milliseconds)"
  }

  /// Milliseconds since 1970.
  package static var now: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
}
