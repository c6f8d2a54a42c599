import Foundation
import KithCore
import KithTerminal

/// The report of `kith hidden`: newest writes that the quota hides.
struct HiddenReport: Sendable {
  /// A hidden write.
  struct Item: Equatable, Sendable {
    var key: String
    var value: PropertyListValue
    var bytes: Int
    /// The name of the device that wrote.
    var device: String
    /// The time of the write, in milliseconds since 1970.
    var writtenMilliseconds: UInt64
  }

  var store: String
  /// The hidden writes, in order of keys.
  var items: [Item]

  /// The report for people.
  func text(_ style: Style) -> String {
    var table = Table([
      ("KEY", .left), ("SIZE", .right), ("WRITTEN BY", .left), ("WRITTEN", .left), ("VALUE", .left),
    ])
    for item in items {
      table.add([
        Table.Cell(Columns.printable(item.key), .strong), Table.Cell(Humane.bytes(item.bytes)),
        Table.Cell(Columns.printable(item.device)),
        Table.Cell(Moment.text(item.writtenMilliseconds)),
        Table.Cell(Columns.printable(ValueText.text(item.value), limit: 32)),
      ])
    }
    return table.text(style)
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "hidden": .list(
        items.map { item in
          .object([
            "bytes": .int(item.bytes), "device": .string(item.device), "key": .string(item.key),
            "value": .value(item.value), "writtenMilliseconds": .int(item.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }
}

/// The report of `kith refusals`: transactions that were accepted offline, but did not fit later.
struct RefusalsReport: Sendable {
  /// A refused transaction.
  struct Item: Equatable, Sendable {
    var number: UInt64
    /// The reason: `quota` or `initialSync`.
    var reason: String
    /// The time of the transaction, in milliseconds since 1970.
    var writtenMilliseconds: UInt64
    /// The writes of the transaction.
    var operations: [Write]
  }

  /// One write; its value is nil if it removed the key.
  struct Write: Equatable, Sendable {
    var key: String
    var value: PropertyListValue?
    var bytes: Int
  }

  var store: String
  /// The refusals, in the order of their numbers.
  var items: [Item]

  /// The report for people.
  func text(_ style: Style) -> String {
    var table = Table([
      ("NO", .right), ("WHY", .left), ("WRITTEN", .left), ("KEY", .left), ("SIZE", .right),
      ("VALUE", .left),
    ])
    for item in items {
      for (index, write) in item.operations.enumerated() {
        let isFirst = index == 0
        table.add([
          Table.Cell(isFirst ? "\(item.number)" : ""),
          Table.Cell(isFirst ? item.reason : "", .warning),
          Table.Cell(isFirst ? Moment.text(item.writtenMilliseconds) : ""),
          Table.Cell(Columns.printable(write.key), .strong),
          Table.Cell(write.value == nil ? "" : Humane.bytes(write.bytes)),
          write.value.map { Table.Cell(Columns.printable(ValueText.text($0), limit: 32)) }
            ?? Table.Cell("removed", .faint),
        ])
      }
    }
    return table.text(style)
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "refusals": .list(
        items.map { item in
          .object([
            "number": .int(item.number),
            "operations": .list(
              item.operations.map { write in
                .object([
                  "key": .string(write.key), "removed": .bool(write.value == nil),
                  "value": write.value.map { .value($0) },
                ])
              }),
            "reason": .string(item.reason), "writtenMilliseconds": .int(item.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }
}

/// Formats moments for people.
enum Moment {
  /// Returns the moment in ISO 8601 and UTC, to the second.
  static func text(_ milliseconds: UInt64) -> String {
    let seconds = Double(milliseconds / 1_000)
    return ISO8601Text.text(Date(timeIntervalSince1970: seconds)) ?? "\(milliseconds)"
  }

  /// Now, in milliseconds since 1970.
  static var now: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
}
