import ArgumentParser
import Foundation

@testable import KithCommands
@testable import KithTerminal

struct CurvesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "curves",
    abstract: "Measure how costs grow.",
    discussion: """
      Each curve varies one number and measures on fresh directories (TMPDIR). Docs/curves makes \
      the picture and the table of them.
      """)

  @Flag(help: "Print JSON.")
  var json = false

  @Option(help: ArgumentHelp("Only these curves, with commas.", valueName: "names"))
  var only: String?

  @Flag(help: "Leave out the greatest size of each curve.")
  var quick = false

  func run() async throws {
    let console = Console(isQuiet: false, tool: "kith-bench")
    let root = FileManager.default.temporaryDirectory
      .appending(path: "kith-curves-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: root) }
    let run = CurvesRun(root: root, isQuick: quick) { console.talk("measuring: \($0)") }
    let curves = try await run.curves(only: only.map { $0.split(separator: ",").map(String.init) })
    try console.data(
      json
        ? Document.versioned(["curves": .list(curves.map(\.document))]).text()
        : curves.map { $0.text + "\n" }.joined())
  }
}
