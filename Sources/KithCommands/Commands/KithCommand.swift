import ArgumentParser
import Glibc
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

/// The tool `kith`, from the command line to the exit status.
public enum KithTool {
  /// Prepares for libdispatch. To be called before anything waits.
  ///
  /// Exits if Swift finds no command line, which is so if /proc is missing: libdispatch would trap.
  /// Silences libdispatch, which tells the system's log in each process of a plain user that it may
  /// not raise a thread's priority. `LIBDISPATCH_LOG=stderr` shows what it says.
  package static func prepareDispatch() {
    guard CommandLine.argc > 0 else {
      Console().warn(
        access("/proc/self", F_OK) == 0
          ? "Swift finds no command line, because a preloaded library moved the environment. "
            + "Try without LD_PRELOAD."
          : "Swift finds the command line through /proc, which is missing here. "
            + "Mount it: mount -t proc proc /proc")
      exit(CommandStatus.failure.rawValue)
    }
    // Not before: Swift looks for the command line beside the environment.
    setenv("LIBDISPATCH_LOG", "NO", 0)
  }

  /// Runs the command of the command line and exits the process if it fails.
  public static func main() async { await main(page: nil) }

  /// As ``main()``, with the page of `kith web`, which only the program `kith-web` has.
  package static func main(page: WebPage.Maker?) async {
    WebPage.maker.withLock { $0 = page }
    StandardFiles.occupy()
    do {
      try checkArguments(CommandLine.unsafeArgv, CommandLine.argc)
      try CommandName.check(Array(CommandLine.arguments.dropFirst()), of: KithCommand.self)
      var command = try await KithCommand.asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      let (status, text) = ending(of: error, arguments: CommandLine.arguments)
      if let text {
        if status == 0 { Console().dataOrExit(text) } else { Console().warn(text) }
      }
      exit(status)
    }
  }

  /// Swift would replace bytes that are not UTF-8, and the command would use another key or file.
  static func checkArguments(
    _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>, _ count: Int32
  ) throws(CommandFailure) {
    for index in 0..<Int(count) {
      guard let argument = arguments[index], String(validatingCString: argument) == nil else {
        continue
      }
      let shown = Columns.printable(String(cString: argument), limit: 80)
      throw CommandFailure(
        .usage,
        "argument \(index), \"\(shown)\", is not valid UTF-8; keys, values and names of files on the "
          + "command line must be. Give other bytes as --type data 0x…, or through standard input.")
    }
  }

  /// The text is help or a version if the status is 0, else the error, without `kith:` before it; nil
  /// if all was printed already. Help is short if the arguments ask for that.
  static func ending(
    of error: any Error, arguments: [String] = []
  ) -> (status: Int32, text: String?) {
    if let failure = CommandFailure(error) { return (failure.status.rawValue, failure.message) }
    return ShortHelp.$isWanted.withValue(ShortHelp.isRequested(by: arguments)) {
      let message = CommandName.checked(KithCommand.fullMessage(for: error))
      let text = message.trimmingPrefix("Error: ")
      return (KithCommand.exitCode(for: error).rawValue, text.isEmpty ? nil : String(text))
    }
  }
}
