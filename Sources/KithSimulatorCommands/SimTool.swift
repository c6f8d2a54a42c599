internal import ArgumentParser
internal import Glibc
internal import KithTerminal

/// The tool `kith-sim`, from the command line to the exit status.
public enum SimTool {
  /// Runs the command of the command line and exits the process if it fails.
  public static func main() async {
    StandardFiles.occupy()
    do {
      var command = try SimCommand.parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let failure as CommandFailure {
      if let message = failure.message { Console(tool: "kith-sim").warn(message) }
      exit(failure.status.rawValue)
    } catch {
      SimCommand.exit(withError: error)
    }
  }
}

struct SimCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "kith-sim",
    abstract: "Runs Kith's core under faults, in virtual time, from one seed.",
    discussion: """
      Each seed makes devices, stores, programs that write, and faults; then the
      faults end, and the devices must agree. Every promise is checked on the way.
      The same seed gives the same run, event for event.

        kith-sim run --seeds 200   a small campaign
        kith-sim replay 4711       one seed again
        kith-sim shrink 4711       a shorter schedule that fails alike
        kith-sim canaries          planted bugs, and the seeds until each is caught
        kith-sim spread            how a change spreads among many devices

      Exit status: 0 all promises held, 1 one was broken, 64 wrong usage.
      """,
    subcommands: [
      RunCommand.self, ReplayCommand.self, ShrinkCommand.self, CanariesCommand.self,
      SpreadCommand.self, CarrierLoadCommand.self,
    ])
}
