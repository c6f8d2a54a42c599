internal import ArgumentParser
internal import KithSimulator
internal import KithTerminal

struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay", abstract: "Repeat a seed, or a schedule from a file.",
    discussion: "Equal trace hashes mean equal runs, event for event.")

  @Argument(help: ArgumentHelp("A seed, or a file that shrink wrote.", valueName: "seed-or-file"))
  var what: String
  @Flag(name: .shortAndLong, help: "Print every event.") var verbose = false
  @Flag(help: "Print the schedule without running it.") var schedule = false
  @OptionGroup var options: SimOptions

  func run() throws {
    let schedule = try options.schedule(what)
    let console = Console(tool: "kith-sim")
    if self.schedule { return try console.rawData(schedule.json) }
    let result = Simulation.run(schedule, keepsTrace: verbose)
    for line in result.lines { try console.data(line) }
    let style = Style.output
    var table = Table()
    table.add(["seed", "\(schedule.seed)"])
    table.add(["devices", "\(schedule.setup.devices), \(schedule.setup.stores) stores"])
    table.add(["faults", .init(schedule.setup.faults.map(\.rawValue).joined(separator: ", "))])
    table.add(["actions", "\(schedule.actionCount) in \(schedule.phases.count) phases"])
    table.add([
      "virtual time", "\(Format.decimals(Double(result.microseconds) / 1e6, 1)) s",
    ])
    table.add(["events", .init(Format.count(result.events))])
    table.add(["trace", .init(result.trace)])
    try console.data(table.text(style))
    guard let violation = result.violation else {
      return try console.data(style(.good, "every promise held"))
    }
    try console.data(style(.bad, "\(violation)"))
    throw ExitCode(1)
  }
}
