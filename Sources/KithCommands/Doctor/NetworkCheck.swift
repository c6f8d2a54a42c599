import KithNetwork
import KithTerminal

struct NetworkCheck: Check {
  static let name = "network"

  func look(at target: DiagnosisTarget) -> [LinkInterface] {
    LinkInterface.current().filter { !$0.isLoopback && !$0.subnets.isEmpty }
  }

  func findings(_ interfaces: [LinkInterface], of target: DiagnosisTarget) -> [Finding] {
    let tried = "looked for networks"
    let connected = interfaces.filter(\.hasCarrier)
    guard connected.isEmpty else {
      let names = connected.map { Columns.printable($0.name) }.joined(separator: ", ")
      return [finding(.good, tried: tried, seen: "this host has an address on \(names)")]
    }
    let seen =
      interfaces.isEmpty
      ? "no interface has an address"
      : "no interface that has an address is connected "
        + "(\(interfaces.map { Columns.printable($0.name) }.joined(separator: ", ")))"
    // A node that serves only this host needs no network.
    if target.isRunning, let report = target.report, !report.listening.isEmpty,
      report.listening.allSatisfy({ $0.hasPrefix("127.") || $0.hasPrefix("[::1]") })
    {
      return [finding(.note, tried: tried, seen: "\(seen); the node serves this host alone")]
    }
    // A folder needs none either.
    if target.isRunning,
      target.report?.carriers.contains(where: { $0.kind == "folder" && $0.problem == nil }) == true
    {
      return [finding(.note, tried: tried, seen: "\(seen); the node exchanges through a folder")]
    }
    return [
      finding(
        .problem, tried: tried, seen: seen,
        advice: "see ip addr: plug the cable in, join a wireless network, or see to DHCP")
    ]
  }
}
