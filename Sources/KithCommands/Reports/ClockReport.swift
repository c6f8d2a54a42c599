import Kith
import KithCore
import KithTerminal

struct ClockReport: Sendable {
  var status: NodeStatus

  func text(_ style: Style) -> String {
    let clock = status.clock
    var facts = Table()
    facts.add(fact: "time", .init(Moment.text(UInt64(clamping: clock.milliseconds))))
    facts.add(fact: "whose", whoseCell)
    facts.add(
      fact: "certain",
      clock.isCertain
        ? .init("yes", .good) : .init("no: no device has a time service (NTP)", .warning))
    facts.add(fact: "generation", "\(clock.generation) of \(clock.generationLimit)")
    let ahead = clock.stampsAheadMilliseconds
    facts.add(
      fact: "stamps",
      ahead > 0
        ? .init("\(NodeStatus.clockText(ahead)) of the time", .bad) : .init("with the time", .good))
    guard !clock.peers.isEmpty else { return facts.text(style) }
    var peers = Table([("DEVICE", .whole), ("CLOCK", .right), ("SYNCHRONISED", .left)])
    for peer in clock.peers {
      let differs = peer.milliseconds.magnitude > 60_000
      peers.add([
        Table.Cell(status.name(of: peer.device), .strong),
        Table.Cell(Format.clock(peer.milliseconds), differs ? .bad : .good),
        Table.Cell(peer.isSynchronised ? "yes" : "no"),
      ])
    }
    return facts.text(style) + "\n\n" + peers.text(style)
  }

  private var whoseCell: Table.Cell {
    let clock = status.clock
    if let device = clock.follows {
      let host = Format.clock(-clock.aheadOfHostMilliseconds)
      return Table.Cell("that of \(status.name(of: device)); the host's is \(host)", .warning)
    }
    if clock.isSynchronised { return Table.Cell("the host's, synchronised", .good) }
    return clock.isWorthless
      ? Table.Cell("the host's, which cannot be right", .bad)
      : Table.Cell("the host's, not synchronised", .warning)
  }

  var document: Document { .versioned(.of(status.clock)) }
}

extension Format {
  /// A clock less another one: `-12 ms`, `+10.5 s`; above two minutes `3 days 2 h ahead`.
  static func clock(_ milliseconds: Int64) -> String {
    milliseconds.magnitude < 120_000 ? offset(milliseconds) : NodeStatus.clockText(milliseconds)
  }

  /// A moment as another device's clock told it, which may be ahead of this one's: `3 days ago`,
  /// `3 days ahead`.
  static func moment(_ moment: UInt64, now: UInt64) -> String {
    let ahead = Int64(clamping: moment) - Int64(clamping: now)
    return ahead > Limits.clockDifferenceMilliseconds
      ? NodeStatus.clockText(ahead) : ago(moment, now: now)
  }
}
