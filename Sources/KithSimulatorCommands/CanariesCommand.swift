internal import ArgumentParser
internal import Foundation
internal import KithSimulator
internal import KithTerminal

struct CanariesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "canaries", abstract: "Plant bugs, and count the seeds until each is caught.",
    discussion: "Needs the build with canaries that Tests/hunt makes. Prints each as it ends.")

  @Option(help: ArgumentHelp("At most, for each canary.", valueName: "number")) var seeds = 500
  @Option(help: ArgumentHelp("The first seed.", valueName: "seed")) var first: UInt64 = 1
  @Option(help: ArgumentHelp("Only this canary.", valueName: "name")) var only: String?
  @Option(
    help: ArgumentHelp("Canaries at one time. Default: one a processor.", valueName: "number"))
  var workers: Int?
  @Option(
    help: ArgumentHelp("Try the schedules in this folder too.", valueName: "folder"),
    completion: .directory)
  var schedules: String?
  @Flag(help: "Print JSON, at the end.") var json = false
  @OptionGroup var options: SimOptions

  func run() async throws {
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
    let hunt = CanaryHunt(
      firstSeed: first, seeds: seeds, bounds: try options.bounds(), kept: try kept())
    let console = Console()
    let width = hunted.map(\.name.count).max() ?? 0
    var catches: [CanaryHunt.Catch] = []
    var waiting = hunted[...]
    try await withThrowingTaskGroup(of: CanaryHunt.Catch.self) { group in
      func begin() {
        guard let (name, bug) = waiting.popFirst() else { return }
        group.addTask { hunt.hunt(name, bug) }
      }
      for _ in 0..<max(1, workers ?? ProcessInfo.processInfo.activeProcessorCount) { begin() }
      while let found = try await group.next() {
        catches.append(found)
        if !json { try console.data(line(found, width)) }
        begin()
      }
    }
    if json { try console.data(KithSimulatorCommands.json(catches)) }
    let missed = catches.count { $0.promise == nil }
    if !json { try console.data("\(catches.count - missed) of \(catches.count) caught") }
    if missed > 0 { throw ExitCode(1) }
  }

  private func line(_ found: CanaryHunt.Catch, _ width: Int) -> String {
    let name = found.canary.padding(toLength: width, withPad: " ", startingAt: 0)
    guard let promise = found.promise else { return "\(name)  not caught: \(found.bug)" }
    guard let seeds = found.seeds else { return "\(name)  \(promise), by \(found.schedule ?? "")" }
    return "\(name)  \(promise), after \(Format.count(seeds, "seed"))"
  }

  private func kept() throws(CommandFailure) -> [(name: String, schedule: Schedule)] {
    guard let schedules else { return [] }
    do {
      let names = try FileManager.default.contentsOfDirectory(atPath: schedules).sorted()
      return try names.filter { $0.hasSuffix(".json") }.map { name in
        let file = URL(filePath: schedules).appending(path: name)
        return (name, try JSONDecoder().decode(Schedule.self, from: Data(contentsOf: file)))
      }
    } catch {
      throw CommandFailure(.failure, "\(schedules) is no folder of schedules: \(error)")
    }
  }
}
