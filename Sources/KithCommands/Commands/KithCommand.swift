import ArgumentParser
import KithCore
import KithTerminal

/// The root of the tool: `kith`.
struct KithCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kith",
    abstract: "Keep one small key-value store on all devices of a person, without a server.",
    discussion: """
      Begin with `kith account create` on one device and `kith run` on every device. `kith \
      invite` and `kith join` bring devices together. Every command speaks to the node that \
      runs in the directory, and opens the directory itself where none runs.

      Data goes to standard output, all talk to standard error.

      EXIT STATUSES:
      \(CommandStatus.help)
      """,
    version: Software.version,
    groupedSubcommands: [
      CommandGroup(
        name: "Devices",
        subcommands: [
          AccountCommand.self, InviteCommand.self, JoinCommand.self, DevicesCommand.self,
          RunCommand.self,
        ]),
      CommandGroup(
        name: "Values",
        subcommands: [
          SetCommand.self, GetCommand.self, RemoveCommand.self, ListCommand.self,
          WatchCommand.self, ImportCommand.self, ExportCommand.self,
        ]),
      CommandGroup(
        name: "State",
        subcommands: [
          StatusCommand.self, PeersCommand.self, QuotaCommand.self, HiddenCommand.self,
          RefusalsCommand.self, SyncCommand.self, ClockCommand.self,
        ]),
      CommandGroup(
        name: "Tools",
        subcommands: [DoctorCommand.self, BenchCommand.self, CompletionsCommand.self]),
    ])
}
