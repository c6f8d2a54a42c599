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
