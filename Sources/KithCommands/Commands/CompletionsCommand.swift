import ArgumentParser
import KithTerminal

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Print a shell's completion script.",
    discussion: """
      For bash: kith completions bash > ~/.local/share/bash-completion/completions/kith
      """)

  @Argument(help: "The shell: bash, zsh or fish.")
  var shell: Shell

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, fish

    var shell: CompletionShell {
      switch self {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    }
  }

  func run() throws {
    try Console().data(KithCommand.completionScript(for: shell.shell))
  }
}
