internal import ArgumentParser
internal import KithSimulator
internal import KithTerminal

struct CanariesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "canaries", abstract: "Plant bugs, and count the seeds until each is caught.",
    discussion: "Needs the build with canaries that Tests/hunt makes.")

  @Option(help: ArgumentHelp("At most, for each canary.", valueName: "number")) var seeds = 500
  @Option(help: ArgumentHelp("The first seed.", valueName: "seed")) var first: UInt64 = 1
  @Option(help: ArgumentHelp("Only this canary.", valueName: "name")) var only: String?
  @Flag(help: "Print JSON.") var json = false

  func run() throws {
    let names = Canaries.bugs.map(\.name)
    guard !names.isEmpty else {
      throw CommandFailure(.failure, "this build has no bugs to plant; use Tests/hunt")
    }
    let hunted = Canaries.bugs.filter { only == nil || $0.name == only }
    guard !hunted.isEmpty else {
      throw CommandFailure(
        .usage,
        "there is no canary \"\(only ?? "")\"; there are " + names.joined(separator: ", "))
    }
    var table = Table([
      ("CANARY", .left), ("SEEDS", .right), ("CAUGHT BY", .left), ("THE BUG", .left),
    ])
    var catches: [CanaryHunt.Catch] = []
    let bar = ProgressBar("hunting", total: hunted.count, isQuiet: json)
    for (done, (name, bug)) in hunted.enumerated() {
      bar.update(done)
      let found = CanaryHunt.hunt(name, bug, from: first, seeds: seeds)
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
