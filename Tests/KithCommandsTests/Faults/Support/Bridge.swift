import Foundation

/// Network namespaces with a cable each to one bridge, as hosts of one LAN, and nothing else: what is
/// sent there leaves the machine by no way.
final class Bridge {
  /// The hosts, and the bridge's own behind them.
  private let namespaces: NamespaceSet
  private var names: [String] { namespaces.names.dropLast() }
  private let hub: String

  private static let cable = "lan"

  /// Whether this user and host may make one with a host.
  static let isPossible = NamespaceSet.canMake { name in try Bridge(name, count: 1).remove() }

  /// Makes so many; throws if this user or host may not.
  init(_ prefix: String, count: Int) throws {
    hub = "\(prefix)-hub"
    namespaces = try NamespaceSet((0..<count).map { "\(prefix)-\($0)" } + [hub])
    try Shell.run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
    try Shell.run("ip", "-n", hub, "link", "set", "bridge", "up")
    for index in 0..<count { try plug(index) }
  }

  /// Removes them; with them their cables go.
  func remove() { namespaces.remove() }

  /// The namespace of the bridge, through which all their broadcasts and multicasts pass.
  var hubPath: String { "/run/netns/\(hub)" }

  /// Gives the bridge's own namespace an address there, as a further host has one.
  func join(as address: String) throws {
    try Shell.run("ip", "-n", hub, "addr", "add", "\(address)/24", "dev", "bridge")
  }

  /// The command that starts a node's process.
  func launcher(_ node: Int) -> [String] { namespaces.launcher(node) }

  /// Gives a node an interface on the LAN, with an address.
  func plug(_ node: Int) throws {
    let port = "port\(node)"
    try Shell.run(
      "ip", "-n", names[node], "link", "add", Self.cable, "type", "veth", "peer", "name", port,
      "netns", hub)
    try Shell.run("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
    // Otherwise the events that the tests wait for would begin seconds later, when an IPv6 address
    // is known to be free.
    try Shell.run(
      "ip", "netns", "exec", names[node], "sysctl", "-qw",
      "net.ipv6.conf.\(Self.cable).accept_dad=0")
    try Shell.run(
      "ip", "-n", names[node], "addr", "add", "10.78.0.\(node + 1)/24", "dev", Self.cable)
    try Shell.run("ip", "-n", names[node], "link", "set", Self.cable, "up")
  }

  /// Gives a node another address in the place of all that it has there.
  func move(_ node: Int, to address: String) throws {
    try Shell.run("ip", "-n", names[node], "addr", "flush", "dev", Self.cable)
    try Shell.run("ip", "-n", names[node], "addr", "add", "\(address)/24", "dev", Self.cable)
  }

  /// Takes a node's interface away.
  func unplug(_ node: Int) throws {
    try Shell.run("ip", "-n", names[node], "link", "del", Self.cable)
  }
}
