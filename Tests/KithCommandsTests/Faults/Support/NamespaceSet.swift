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
