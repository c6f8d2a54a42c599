import Kith
import KithTerminal

/// The report of `kith carrier list`, also a part of `kith status`.
struct CarriersReport: Equatable, Sendable {
  var status: NodeStatus
  /// Whether people see a second table, for rarer questions.
  var isLong = false
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    guard !status.carriers.isEmpty else { return "" }
    var everyday = Table([
      ("CARRIER", .whole), ("FOR", .left), ("HOLDS ALL", .right), ("REMARKS", .wrapped),
    ])
    var rarer = Table([
      ("CARRIER", .whole), ("LISTED", .right), ("OBJECTS", .right), ("SIZE", .right),
    ])
    for carrier in status.carriers {
      let name = Table.Cell("\(carrier.kind) \(carrier.location)")
      everyday.add([
        name, Table.Cell(carrier.isShared ? "the account" : "this device"), held(carrier),
        Table.Cell(carrier.remarks, .warning),
      ])
      rarer.add([
        name, Table.Cell(Format.ago(carrier.listedMilliseconds, now: nowMilliseconds)),
        Table.Cell(Format.count(carrier.objects)), Table.Cell(Format.bytes(carrier.bytes)),
      ])
    }
    return (isLong ? [everyday, rarer] : [everyday]).map { $0.text(style) }
      .joined(separator: "\n\n")
  }

  private func held(_ carrier: NodeStatus.Carrier) -> Table.Cell {
    guard carrier.problem == nil, carrier.listedMilliseconds != nil else {
      return Table.Cell("unknown", .warning)
    }
    return carrier.heldSinceMilliseconds.map {
      Table.Cell("since \(Format.ago($0, now: nowMilliseconds))", .good)
    } ?? Table.Cell("no", .warning)
  }

  var document: Document { .versioned(["carriers": .list(status.carriers.map(Document.of))]) }
}

extension NodeStatus.Carrier {
  var remarks: String {
    var remarks: [String] = []
    if let problem {
      let sentence = Columns.sentence(problem)
      remarks.append(String(sentence.hasSuffix(".") ? sentence.dropLast() : sentence[...]))
    }
    if waitsForTime {
      remarks.append("writes wait until the time is certain, at most 10 min; or: kith sync")
    }
    if ahead > 0 {
      remarks.append(
        "\(Format.count(ahead, "object")) from ahead of this clock; see: kith clock on both devices"
      )
    }
    if waiting > 0 {
      remarks.append(
        "\(Format.count(waiting, "object")) cannot be used yet: if this stays, let this device meet another"
      )
    }
    if unreadable > 0 { remarks.append("\(Format.count(unreadable, "object")) cannot be opened") }
    if vanished > 0 { remarks.append("\(Format.count(vanished, "object")) vanished") }
    // If the others bring everything, nothing is wrong.
    if missing > 0, heldSinceMilliseconds == nil {
      remarks.append("\(Format.count(missing, "object")) missing from the last listing")
    }
    return remarks.joined(separator: "; ")
  }
}
