internal import ArgumentParser
internal import Foundation
internal import KithSimulator
internal import KithTerminal

struct ShrinkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shrink", abstract: "Find a shorter schedule that fails like a seed.",
    discussion: """
      Leaves out phases, actions, faults, devices and stores while the same promise
      still breaks. Writes a file for replay, or for the regression tests
      (Tests/KithSimulatorTests/Schedules).
      """)

  @Argument(help: ArgumentHelp("A seed, or a file with a schedule.", valueName: "seed-or-file"))
  var what: String
  @Option(help: ArgumentHelp("The most runs.", valueName: "number")) var runs = 1_500
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The file. Default: shrunk-SEED.json.", valueName: "file"))
  var output: String?
  @Flag(name: .shortAndLong, help: "Show no progress.") var quiet = false
  @OptionGroup var options: SimOptions

  func run() throws {
    let schedule = try options.schedule(what)
    let console = Console(tool: "kith-sim")
    guard let violation = Simulation.run(schedule).violation else {
      throw CommandFailure(
        .notFound, "every promise holds in this run; there is nothing to shrink")
    }
    let bar = ProgressBar("shrinking", total: runs, isQuiet: quiet)
    var shrinker = Shrinker(schedule, breaking: violation.promise, limit: runs) {
      bar.update($0.runs)
    }
    shrinker.shrink()
    bar.finish()
    let path = output ?? "shrunk-\(schedule.seed).json"
    try shrinker.schedule.json.write(to: URL(filePath: path))
    let result = Simulation.run(shrinker.schedule)
    try console.data(
      """
      \(Style.output(.bad, result.violation?.description ?? "")) 
      \(schedule.actionCount) actions became \(shrinker.schedule.actionCount), \
      \(schedule.setup.devices) devices \(shrinker.schedule.setup.devices), in \(shrinker.runs) runs
      """)
    for (number, phase) in shrinker.schedule.phases.enumerated() {
      let seconds = Format.decimals(Double(phase.microseconds) / 1e6, 3)
      try console.data("phase \(number + 1), \(seconds) s:")
      for action in phase.actions {
        try console.data("  \(Format.decimals(Double(action.at) / 1e6, 3)) s  \(action.words)")
      }
    }
    try console.data("again:  kith-sim replay \(path)")
  }
}

extension Action {
  fileprivate var words: String {
    switch kind {
    case .write(let device, let store, let writes):
      "device \(device) writes in store \(store): "
        + writes.map { write in
          write.size.map { "key \(write.key), \($0) characters" } ?? "key \(write.key) removed"
        }.joined(separator: "; ")
    default: "\(kind)"
    }
  }
}
