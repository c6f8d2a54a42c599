import ArgumentParser
import KithTerminal

/// `kith bench`.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure this machine and Kith on it, each figure against its budget.",
    discussion: """
      Works in a temporary directory (TMPDIR) on the disk that shall be measured. Ends with \
      status 1 if a figure misses its budget.
      """)

  @Flag(help: "Print JSON for programs.")
  var json = false

  @Flag(name: [.short, .long], help: "Say nothing but errors on standard error.")
  var quiet = false

  @Flag(help: "Fewer rounds: a few seconds, rougher figures.")
  var quick = false

  func run() async throws {
    let console = Console(isQuiet: quiet)
    let report = try await BenchRun(isQuick: quick) { console.talk("measuring: \($0)") }.report()
    try console.data(json ? report.document.text() : report.text(.output))
    guard report.isKept else {
      let missed = report.figures.filter { !$0.isKept }.map(\.name).joined(separator: ", ")
      throw CommandFailure(.failure, "over budget: \(missed)")
    }
  }
}
