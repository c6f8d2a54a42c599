import Kith

/// Calls per second of one thread, as Tests/KithC/speed.c measures them: kith-speed DIRECTORY. The
/// directory must be new.
@main
enum Speed {
  static func main() async throws {
    let accounts = try Accounts(.init(directory: CommandLine.arguments[1]))
    let store = try accounts.store("com.example.speed")
    try measure("set, each durable", 500) { try store.set(.integer(Int64($0)), forKey: "n") }
    let node = Task { try await accounts.run() }
    for await status in accounts.statusUpdates where status.isRunning { break }
    try measure("set", 20_000) { try store.set(.integer(Int64($0)), forKey: "n") }
    measure("get an integer", 1_000_000) { _ in
      guard store.value(forKey: "n") == 19_999 else { fatalError("another value") }
    }
    try store.set("dark", forKey: "theme")
    measure("get a string", 300_000) { _ in
      guard store.value(forKey: "theme") == "dark" else { fatalError("another value") }
    }
    node.cancel()
    _ = await node.result
    try accounts.close()
  }

  private static func measure(
    _ what: String, _ count: Int, _ call: (Int) throws -> Void
  ) rethrows {
    let time = try ContinuousClock().measure { for number in 0..<count { try call(number) } }
    print(what, Int(Double(count) / (time / .seconds(1))), "/s", separator: "\t")
  }
}
