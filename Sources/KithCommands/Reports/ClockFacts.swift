import Kith
import KithTerminal

/// What `kith clock` says.
struct ClockFacts: Sendable {
  var clock: ClockReport
  /// Names of devices by id.
  var names: [String: String]

  /// Nil where no device answers for an account.
  init?(_ report: NodeReport) {
    guard let clock = report.clock else { return nil }
    self.clock = clock
    names = Dictionary(
      report.devices.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
  }

  private func name(_ device: String) -> String {
    Columns.printable(names[device] ?? String(device.prefix(16)), limit: 24)
  }

  /// The report for people.
  func text(_ style: Style) -> String {
    var facts = Table([("", .left), ("", .left)])
    let time = Moment.text(UInt64(clamping: clock.milliseconds))
    facts.add([Table.Cell("time", .faint), Table.Cell(time)])
    facts.add([Table.Cell("whose", .faint), whoseCell])
    facts.add([
      Table.Cell("certain", .faint),
      clock.isCertain
        ? Table.Cell("yes", .good) : Table.Cell("no kernel says that it is right", .warning),
    ])
    facts.add([
      Table.Cell("generation", .faint),
      Table.Cell("\(clock.generation) of \(clock.generationLimit)"),
    ])
    let ahead = clock.stampsAheadMilliseconds
    facts.add([
      Table.Cell("stamps", .faint),
      ahead > 0
        ? Table.Cell("\(PeersReport.offset(ahead)) ahead of the time", .bad)
        : Table.Cell("with the time", .good),
    ])
    guard !clock.peers.isEmpty else { return facts.text(style) }
    var peers = Table([("DEVICE", .left), ("CLOCK", .right), ("SYNCHRONISED", .left)])
    for peer in clock.peers {
      let differs = peer.milliseconds.magnitude > 60_000
      peers.add([
        Table.Cell(name(peer.device), .strong),
        Table.Cell(PeersReport.offset(peer.milliseconds), differs ? .bad : .good),
        Table.Cell(peer.isSynchronised ? "yes" : "no"),
      ])
    }
    return facts.text(style) + "\n\n" + peers.text(style)
  }

  private var whoseCell: Table.Cell {
    if let device = clock.follows {
      let offset = PeersReport.offset(clock.aheadOfHostMilliseconds)
      return Table.Cell("that of \(name(device)), \(offset) from the host's", .warning)
    }
    if clock.isSynchronised { return Table.Cell("the host's, synchronised", .good) }
    return clock.isWorthless
      ? Table.Cell("the host's, which cannot be right", .bad)
      : Table.Cell("the host's, not synchronised", .warning)
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "aheadOfHostMilliseconds": .value(.integer(clock.aheadOfHostMilliseconds)),
      "certain": .bool(clock.isCertain),
      "follows": .string(clock.follows),
      "generation": .int(clock.generation),
      "generationLimit": .int(clock.generationLimit),
      "milliseconds": .value(.integer(clock.milliseconds)),
      "peers": .list(
        clock.peers.map { peer in
          .object([
            "clockOffsetMilliseconds": .value(.integer(peer.milliseconds)),
            "device": .string(peer.device), "name": .string(names[peer.device]),
            "synchronised": .bool(peer.isSynchronised),
          ])
        }),
      "stampsAheadMilliseconds": .value(.integer(clock.stampsAheadMilliseconds)),
      "synchronised": .bool(clock.isSynchronised),
      "worthless": .bool(clock.isWorthless),
    ])
  }
}
