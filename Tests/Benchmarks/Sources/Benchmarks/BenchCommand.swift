import ArgumentParser

@testable import KithCommands
@testable import KithTerminal

@main
enum KithBench {
  static func main() async {
    // `MemoryBench` starts this executable again, as `kith run`.
    if CommandLine.arguments.dropFirst().first == "run" {
      await KithTool.main()
    } else {
      await BenchTool.main()
    }
  }
}

/// The figures, unless another measurement is named. The root has no options: it would take those of
/// its subcommands.
struct BenchTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kith-bench", abstract: "Measure this machine, and Kith on it.",
    subcommands: [BenchCommand.self, HopsCommand.self, CurvesCommand.self],
    defaultSubcommand: BenchCommand.self)
}

struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "figures",
    abstract: "Measure this machine, and Kith on it against its budgets.",
    discussion: """
      Measures the disk of a temporary directory (TMPDIR). Status 1 if a figure misses its budget.
      """)

  @Flag(help: "Print JSON.")
  var json = false

  @Flag(name: [.short, .long], help: "Print only errors on standard error.")
  var quiet = false

  @Flag(help: "Fewer rounds: some seconds, rough figures.")
  var quick = false

  func run() async throws {
    let console = Console(isQuiet: quiet, tool: "kith-bench")
    let report = try await BenchRun(isQuick: quick) { console.talk("measuring: \($0)") }.report()
    try console.data(json ? report.document.text() : report.text(.output))
    guard report.isKept else {
      let missed = report.figures.filter { $0.isRequired && !$0.isKept }.map(\.name)
      throw CommandFailure(.failure, "over budget: \(missed.joined(separator: ", "))")
    }
  }
}
