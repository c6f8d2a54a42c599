import Foundation

/// Three network namespaces with a cable between each two, and nothing else: what is sent there leaves
/// the machine by no way.
final class Namespaces {
  private let namespaces: NamespaceSet
  private var names: [String] { namespaces.names }

  private static let pairs = [(0, 1), (0, 2), (1, 2)]

  /// Makes them; throws if this user or host may not.
  init(_ prefix: String) throws {
    namespaces = try NamespaceSet((0..<3).map { "\(prefix)-\($0)" })
    for (one, other) in Self.pairs {
      try Shell.run(
        "ip", "-n", names[one], "link", "add", Self.cable(one, other), "type", "veth", "peer",
        "name", Self.cable(other, one), "netns", names[other])
      for (here, there) in [(one, other), (other, one)] {
        let address = "\(Self.address(of: here, towards: there))/30"
        try Shell.run(
          "ip", "-n", names[here], "addr", "add", address, "dev", Self.cable(here, there))
        try Shell.run("ip", "-n", names[here], "link", "set", Self.cable(here, there), "up")
      }
    }
  }

  /// Removes them; with them their cables go.
  func remove() { namespaces.remove() }

  /// The command that starts a node's process.
  func launcher(_ node: Int) -> [String] { namespaces.launcher(node) }

  /// The address at which another node meets a node.
  static func address(of node: Int, towards other: Int) -> String {
    "10.77.\(min(node, other) * 3 + max(node, other)).\(node < other ? 1 : 2)"
  }

  private static func cable(_ node: Int, _ other: Int) -> String { "cable\(node)\(other)" }

  /// Pulls the plugs at the others' ends.
  func isolate(_ node: Int) throws {
    for other in 0..<3 where other != node {
      try Shell.run("ip", "-n", names[other], "link", "set", Self.cable(other, node), "down")
    }
  }

  /// Sends frames to a wrong hardware address, so that they get lost one way and nobody hears of it.
  func silence(_ node: Int, outgoing: Bool) throws {
    for other in 0..<3 where other != node {
      let (from, to) = outgoing ? (node, other) : (other, node)
      try Shell.run(
        "ip", "-n", names[from], "neigh", "replace", Self.address(of: to, towards: from), "lladdr",
        "02:00:00:00:00:99", "dev", Self.cable(from, to), "nud", "permanent")
    }
  }

  /// Mends everything.
  func heal() throws {
    for (one, other) in Self.pairs {
      for (here, there) in [(one, other), (other, one)] {
        try Shell.run("ip", "-n", names[here], "link", "set", Self.cable(here, there), "up")
        _ = try? Shell.run(
          "ip", "-n", names[here], "neigh", "del", Self.address(of: there, towards: here), "dev",
          Self.cable(here, there))
      }
    }
  }
}

/// Network namespaces of one test, each with loopback and nothing else; they go with it.
final class NamespaceSet {
  let names: [String]
  private var isRemoved = false

  /// Whether this user and host may make namespaces with a cable between them.
  static let isPossible = canMake { name in
    let namespaces = try NamespaceSet(["\(name)-a", "\(name)-b"])
    defer { namespaces.remove() }
    try Shell.run(
      "ip", "-n", namespaces.names[0], "link", "add", "net", "type", "veth", "peer", "name", "net",
      "netns", namespaces.names[1])
  }

  /// Tries to make something under a new name. Returns whether that worked, and prints the reason if
  /// it did not. `make` removes all that it made.
  static func canMake(_ make: (_ name: String) throws -> Void) -> Bool {
    do {
      try make("\(Household.prefix)\(UInt32.random(in: 0 ... .max))")
      return true
    } catch {
      print("this host refuses: \(error)")
      return false
    }
  }

  /// Makes them; throws if this user or host may not, and leaves none then.
  init(_ names: [String]) throws {
    self.names = names
    do {
      for name in names {
        try Shell.run("ip", "netns", "add", name)
        try Shell.run("ip", "-n", name, "link", "set", "lo", "up")
      }
    } catch {
      remove()
      throw error
    }
  }

  deinit { remove() }

  /// Removes them; with them their cables go.
  func remove() {
    guard !isRemoved else { return }
    isRemoved = true
    for name in names { _ = try? Shell.run("ip", "netns", "del", name) }
  }

  /// The command that starts a process in one of them.
  func launcher(_ index: Int) -> [String] { ["ip", "netns", "exec", names[index]] }
}

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
