internal import ArgumentParser
internal import KithSimulator
internal import KithTerminal

struct SpreadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spread", abstract: "Measure how a change spreads among many devices.",
    discussion: """
      The production core and overlay, in virtual time, without faults: 5 to 30 ms
      one way, 2 ms a commit. Shows for each number of devices their sessions, a
      change's hops, when all have it, when its writer knows, and the traffic. A
      seed gives the same figures each time.
      """)

  @Option(
    help: ArgumentHelp("Numbers of devices, with commas.", valueName: "numbers"))
  var devices = "8,32,128,512"
  @Option(help: ArgumentHelp("How many changes.", valueName: "number")) var changes = 3
  @Option(help: ArgumentHelp("The seed of all randomness.", valueName: "seed")) var seed: UInt64 = 1
  @Flag(help: "Print JSON.") var json = false

  func run() throws {
    let sizes = try deviceCounts(devices, atMost: 1_024)
    guard (1...100).contains(changes) else {
      throw CommandFailure(.usage, "--changes takes 1 to 100")
    }
    let results = sizes.map {
      Spread.run(Spread.Setup(devices: $0, seed: seed, changes: changes))
    }
    try Console().data(
      json ? KithSimulatorCommands.json(results) : Self.table(results).text(Style.output))
    if results.contains(where: { !$0.isWhole }) {
      throw CommandFailure(.failure, "a change did not come to all devices")
    }
  }

  private static func table(_ results: [SpreadResult]) -> Table {
    var table = Table([
      ("DEVICES", .right), ("SESSIONS", .right), ("HOPS", .right), ("SPREAD ms", .right),
      ("KNOWN ms", .right), ("COPIES", .right), ("MESSAGES", .right), ("BYTES", .right),
      ("A DEVICE", .right), ("WORDS", .right), ("A DEVICE", .right),
    ])
    for result in results {
      let count = result.setup.devices
      func mean(_ value: (SpreadResult.Change) -> Int) -> Int {
        result.changes.reduce(0) { $0 + value($1) } / max(1, result.changes.count)
      }
      let hops = result.changes.map(\.hops)
      let bytes = mean { $0.changes.bytes + $0.progress.bytes }
      let words = mean(\.words.bytes)
      table.add(
        [
          "\(count)", "\(result.connections.median) (\(result.connections.most))",
          "\(hops.map(\.median).max() ?? 0) (\(hops.map(\.most).max() ?? 0))",
          "\(result.changes.compactMap(\.spreadMilliseconds).max() ?? 0)",
          "\(result.changes.compactMap(\.knownMilliseconds).max() ?? 0)",
          "\(Format.decimals(Double(mean(\.duplicates)) / Double(max(1, count - 1)), 1))",
          "\(mean { $0.changes.messages + $0.progress.messages })", "\(bytes)", "\(bytes / count)",
          "\(words)", "\(words / count)",
        ].map { Table.Cell($0) })
    }
    return table
  }
}

extension SpreadResult {
  fileprivate var isWhole: Bool {
    changes.allSatisfy { $0.spreadMilliseconds != nil && $0.knownMilliseconds != nil }
  }
}
