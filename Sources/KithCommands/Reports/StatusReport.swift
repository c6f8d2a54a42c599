import Kith
import KithTerminal

/// The report of `kith status`.
struct StatusReport: Equatable, Sendable {
  /// The directory.
  var directory: String
  /// The process that runs the node; nil if none does.
  var processID: Int32?
  /// The addresses on which the node listens.
  var listening: [String] = []
  /// The state of discovery; nil if it is off.
  var discovery: NodeDiscovery?
  /// The account's id in hexadecimal; nil when signed out.
  var account: String?
  /// All devices, including this one.
  var devices: [DeviceFacts]
  /// The stores that are or were open.
  var stores: [StoreFacts]
  /// Whether the kernel reports the clock as synchronised.
  var isClockSynchronised: Bool
  /// The problems, in sentences.
  var problems: [String] = []

  /// The report for people.
  func text(_ style: Style) -> String {
    var facts = Table([("", .left), ("", .left)])
    let own = devices.first(where: \.isSelf)
    if let own {
      facts.add([
        Table.Cell("device", .faint),
        Table.Cell("\(Columns.printable(own.name))  \(own.fingerprint)"),
      ])
    }
    facts.add([
      Table.Cell("account", .faint),
      account.map { Table.Cell(String($0.prefix(16))) }
        ?? Table.Cell("none; what is written stays on this host", .warning),
    ])
    facts.add([Table.Cell("directory", .faint), Table.Cell(directory)])
    facts.add([Table.Cell("node", .faint), nodeCell])
    if processID != nil {
      if account != nil {
        facts.add([Table.Cell("peers", .faint), peersCell])
        facts.add([Table.Cell("discovery", .faint), discoveryCell])
      }
    }
    facts.add([
      Table.Cell("clock", .faint),
      isClockSynchronised
        ? Table.Cell("synchronised", .good)
        : Table.Cell("not synchronised by the kernel", .warning),
    ])
    var parts = [facts.text(style)]
    if account == nil {
      parts.append("Nobody is signed in: \(CommonOptions.signingIn).")
    }
    for problem in problems { parts.append(style(.bad, "problem: \(Columns.printable(problem))")) }
    if !stores.isEmpty { parts.append(storesTable.text(style)) }
    return parts.joined(separator: "\n\n")
  }

  /// Removes the data about the device of the local stores, which is in no account of a person.
  mutating func showLocalStores() {
    account = nil
    devices = []
  }

  private var nodeCell: Table.Cell {
    guard let processID else {
      return account == nil
        ? Table.Cell("not running") : Table.Cell("not running; start it with: kith run", .warning)
    }
    let place = listening.isEmpty ? "" : ", listening on \(listening.joined(separator: ", "))"
    return Table.Cell("running as process \(processID)\(place)", .good)
  }

  private var peersCell: Table.Cell {
    let others = devices.filter { !$0.isSelf }
    if others.isEmpty { return Table.Cell("no other device yet; add one with: kith invite") }
    let reached = others.count(where: \.isInTouch)
    return Table.Cell(
      "\(reached) of \(others.count) in touch", reached == 0 ? .warning : .good)
  }

  private var discoveryCell: Table.Cell {
    guard let discovery else { return Table.Cell("off") }
    var interfaces: [String] = []
    for link in discovery.links where link.problem == nil && !interfaces.contains(link.interface) {
      interfaces.append(link.interface)
    }
    guard !interfaces.isEmpty else {
      return Table.Cell("no network here takes multicast; name peers with --peer", .warning)
    }
    let heard = Humane.count(discovery.neighbours.count, "device")
    guard discovery.links.contains(where: { $0.problem == nil && !$0.isLoopback }) else {
      return Table.Cell("\(heard) heard on this host alone, and no other network", .warning)
    }
    return Table.Cell("\(heard) heard on \(interfaces.joined(separator: ", "))")
  }

  private var storesTable: Table {
    var table = Table([
      ("STORE", .left), ("KEYS", .right), ("SIZE", .right), ("USED", .right), ("ON", .right),
      ("REMARKS", .left),
    ])
    let others = devices.count { !$0.isSelf }
    for store in stores {
      table.add([
        Table.Cell(Columns.printable(store.identifier)), Table.Cell(Humane.count(store.keys)),
        Table.Cell(Humane.bytes(store.bytes)),
        Table.Cell(Humane.percent(store.bytes, of: store.limitBytes)),
        Table.Cell("\(store.heldBy.count + 1)/\(others + 1)"),
        Table.Cell(store.remarks, .warning),
      ])
    }
    return table
  }

  private static func document(_ discovery: NodeDiscovery) -> Document {
    .object([
      "ignored": .int(Int(clamping: discovery.ignored)),
      "links": .list(
        discovery.links.map { link in
          .object([
            "family": .string(link.family), "interface": .string(link.interface),
            "problem": .string(link.problem),
          ])
        }),
      "neighbours": .list(
        discovery.neighbours.map { neighbour in
          .object([
            "addresses": .strings(neighbour.addresses), "device": .string(neighbour.device),
            "milliseconds": .int(Int(clamping: neighbour.milliseconds)),
          ])
        }),
      "sent": .int(Int(clamping: discovery.sent)),
    ])
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "account": .string(account),
      "clockSynchronised": .bool(isClockSynchronised),
      "device": devices.first(where: \.isSelf)?.document,
      "devices": .list(devices.map(\.document)),
      "directory": .string(directory),
      "discovery": discovery.map(Self.document),
      "listening": .strings(listening),
      "problems": .strings(problems),
      "processID": processID.map { .int(Int($0)) },
      "running": .bool(processID != nil),
      "stores": .list(stores.map(\.document)),
    ])
  }
}
