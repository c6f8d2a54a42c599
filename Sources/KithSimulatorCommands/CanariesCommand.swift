internal import ArgumentParser
internal import KithSimulator
internal import KithTerminal

/// `kith-sim canaries`: plants one bug after the other.
struct CanariesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "canaries", abstract: "Plant bugs, and count the seeds until each is caught.",
    discussion: """
      Works only in a build with bugs to plant:
        swift run -c release --traits Canaries --scratch-path .build-canaries kith-sim canaries
      """)

  @Option(help: ArgumentHelp("The most seeds for one canary.", valueName: "number")) var seeds = 500
  @Option(help: ArgumentHelp("The first seed.", valueName: "seed")) var first: UInt64 = 1
  @Option(help: ArgumentHelp("Only this canary.", valueName: "name")) var only: String?
  @Flag(help: "Print a JSON document instead of a table.") var json = false

  func run() throws {
    guard CanaryHunt.isPossible else {
      throw CommandFailure(
        .failure,
        "this build has no bugs to plant; use swift run -c release --traits Canaries "
          + "--scratch-path .build-canaries kith-sim canaries")
    }
    let names = CanaryHunt.names.filter { only == nil || $0 == only }
    guard !names.isEmpty else {
      throw CommandFailure(
        .usage,
        "there is no canary \"\(only ?? "")\"; there are "
          + CanaryHunt.names.joined(separator: ", "))
    }
    var table = Table([
      ("CANARY", .left), ("SEEDS", .right), ("CAUGHT BY", .left), ("THE BUG", .left),
    ])
    var catches: [CanaryHunt.Catch] = []
    let bar = ProgressBar("hunting", total: names.count, isQuiet: json)
    for (done, name) in names.enumerated() {
      bar.update(done)
      let found = CanaryHunt.hunt(name, from: first, seeds: seeds)
      catches.append(found)
      table.add([
        .init(name),
        .init(found.seeds.map(String.init) ?? "not caught", found.seeds == nil ? .bad : .plain),
        .init(found.promise ?? ""), .init(found.bug, .faint),
      ])
    }
    bar.finish()
    try Console().data(json ? KithSimulatorCommands.json(catches) : table.text(Style.output))
    if catches.contains(where: { $0.seeds == nil }) { throw ExitCode(1) }
  }
}
