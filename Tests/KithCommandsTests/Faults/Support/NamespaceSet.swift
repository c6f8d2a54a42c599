/// Network namespaces of one test, each with loopback and nothing else; they go with it.
final class NamespaceSet {
  let names: [String]
  private var isRemoved = false

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
