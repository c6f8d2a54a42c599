import ArgumentParser
import KithCore
import KithTerminal

struct KithCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kith",
    abstract: "Keep a small key-value store on all of a person's devices, without a server.",
    discussion: """
      Run `kith account create` on the first device, `kith invite` there and `kith join` on the \
      next, and `kith run` on each. Other commands ask the running node, or open the \
      directory if none runs.

      --directory defaults to KITH_DIRECTORY, $XDG_DATA_HOME/kith or ~/.local/share/kith, --store \
      to KITH_STORE_IDENTIFIER or "default". Data goes to standard output, messages to standard \
      error.

      After a command, -h shows its own options, --help also those that most commands have.

      For completions: kith --generate-completion-script bash (or zsh, or fish)

      EXIT STATUSES:
      \(CommandStatus.help)
      """,
    version: Software.version,
    groupedSubcommands: [
      CommandGroup(
        name: "Devices",
        subcommands: [
          AccountCommand.self, InviteCommand.self, JoinCommand.self, DevicesCommand.self,
          CarrierCommand.self, RunCommand.self, ServiceCommand.self,
        ]),
      CommandGroup(
        name: "Values",
        subcommands: [
          SetCommand.self, GetCommand.self, RemoveCommand.self, ListCommand.self,
          StoresCommand.self, WatchCommand.self, HistoryCommand.self, UndoCommand.self,
          ImportCommand.self, ExportCommand.self, BatchCommand.self,
        ]),
      CommandGroup(
        name: "State",
        subcommands: [
          StatusCommand.self, UnshownCommand.self, SyncCommand.self, ClockCommand.self,
          WebCommand.self,
        ]),
      CommandGroup(
        name: "Tools",
        subcommands: [DoctorCommand.self]),
    ])
}
