import Kith
import KithTerminal

struct StatusReport: Equatable, Sendable {
  var status: NodeStatus
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    var facts = Table()
    if let own = status.devices.first(where: \.isThisDevice) {
      facts.add(fact: "device", "\(Columns.printable(own.name))  \(own.fingerprint)")
    }
    facts.add(
      fact: "account",
      status.account.map { "\($0.hex.prefix(16))" }
        ?? .init("none; writes stay on this host", .warning))
    facts.add(fact: "directory", .init(status.directory))
    facts.add(fact: "node", nodeCell)
    if status.isRunning, status.account != nil {
      facts.add(fact: "peers", peersCell)
      facts.add(fact: "discovery", discoveryCell)
    }
    facts.add(
      fact: "clock",
      status.clock.isSynchronised
        ? .init("synchronised", .good) : .init("not synchronised by the kernel", .warning))
    if !status.keepsHistory { facts.add(fact: "history", "off; keep it with: kith run --history") }
    var parts = [facts.text(style)]
    if status.account == nil {
      parts.append("Nobody is signed in: \(CommonOptions.signingIn).")
    }
    for problem in status.problems {
      parts.append(
        style.paragraph(.bad, "problem: \(Columns.printable(problem.description))"))
    }
    let carriers = CarriersReport(status: status, nowMilliseconds: nowMilliseconds).text(style)
    if !carriers.isEmpty { parts.append(carriers) }
    let stores = StoresReport(status: status, showsEmpty: true).text(style)
    if !stores.isEmpty { parts.append(stores) }
    return parts.joined(separator: "\n\n")
  }

  private var nodeCell: Table.Cell {
    guard let processID = status.processID else {
      return status.account == nil
        ? Table.Cell("not running") : Table.Cell("not running; start it with: kith run", .warning)
    }
    let place =
      status.listening.isEmpty
      ? "" : ", listening on \(status.listening.joined(separator: ", "))"
    return Table.Cell("running as process \(processID)\(place)", .good)
  }

  private var peersCell: Table.Cell {
    guard !status.others.isEmpty else {
      return Table.Cell("no other device yet; add one with: kith invite")
    }
    let isAlone = !status.others.contains { status.isConnected(to: $0, now: nowMilliseconds) }
    return Table.Cell(status.connection(now: nowMilliseconds), isAlone ? .warning : .good)
  }

  private var discoveryCell: Table.Cell {
    guard let discovery = status.discovery else { return Table.Cell("off") }
    var interfaces: [String] = []
    for link in discovery.links where link.problem == nil && !interfaces.contains(link.interface) {
      interfaces.append(link.interface)
    }
    guard !interfaces.isEmpty else {
      return Table.Cell("no network here takes multicast; name peers with --peer", .warning)
    }
    let heard = Format.count(discovery.neighbours.count, "device")
    guard discovery.links.contains(where: { $0.problem == nil && !$0.isLoopback }) else {
      return Table.Cell("\(heard) heard on this host alone, and no other network", .warning)
    }
    return Table.Cell("\(heard) heard on \(interfaces.joined(separator: ", "))")
  }

  var document: Document { .versioned(.of(status)) }
}
