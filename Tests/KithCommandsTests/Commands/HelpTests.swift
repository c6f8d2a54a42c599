import ArgumentParser
import Foundation
import KithTerminal
import Testing

@testable import KithCommands

@Suite("Help")
struct HelpTests {
  /// The help of the whole tool is what `Golden/help.txt` says. After a change on purpose, run the
  /// test with `KITH_WRITE_GOLDEN=1` and read the difference.
  @Test func `of the whole tool`() throws {
    let file = URL(filePath: #filePath).appending(path: "../../Golden/help.txt").standardized
    let help = Self.help(of: KithCommand.self, name: "kith")
    if ProcessInfo.processInfo.environment["KITH_WRITE_GOLDEN"] != nil {
      try help.write(to: file, atomically: true, encoding: .utf8)
    }
    let golden = try String(contentsOf: file, encoding: .utf8)
    #expect(help == golden)
  }

  @Test func `names every exit status`() {
    let help = KithCommand.helpMessage(columns: 80)
    for status in CommandStatus.allCases { #expect(help.contains("  \(status.rawValue) ")) }
  }

  @Test func `in short is without the options that most commands have`() throws {
    let error = #expect(throws: (any Error).self) {
      var command = try KithCommand.parseAsRoot(["ls", "-h"])
      try command.run()
    }
    func text(_ arguments: String...) throws -> String {
      try KithTool.ending(of: #require(error), arguments: arguments).text ?? ""
    }
    let short = try text("kith", "ls", "-h")
    let long = try text("kith", "ls", "--help")
    #expect(short.contains("--by-size") && long.contains("--by-size"))
    for name in ["--directory", "--passphrase-file", "--json", "--quiet", "--store"] {
      #expect(!short.contains(name) && long.contains(name))
    }
    // After --, it is no option.
    #expect(try text("kith", "ls", "--", "-h") == long)
  }

  private static func help(of command: any ParsableCommand.Type, name: String) -> String {
    var text = "$ \(name) --help\n\(KithCommand.helpMessage(for: command, columns: 80))\n"
    for subcommand in command.configuration.subcommands {
      let subname = subcommand.configuration.commandName ?? "?"
      text += "\n" + help(of: subcommand, name: "\(name) \(subname)")
    }
    return text
  }
}
