import ArgumentParser
import Foundation
import Glibc

/// The tool `kith`, from the command line to the exit status.
public enum KithTool {
  /// Runs what the command line asks for, and ends the process where it fails.
  public static func main() async {
    do {
      var command = try KithCommand.parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      let (status, output) = ending(of: error)
      switch output {
      case .nothing: break
      case .data(let text): Console().data(text)
      case .error(let text): Console().warn(text)
      }
      exit(status)
    }
  }

  /// What is said at the end of a command that threw.
  enum Output: Equatable {
    /// Nothing: all was said.
    case nothing
    /// Help or a version, which were asked for.
    case data(String)
    /// What went wrong, without `kith:` before it.
    case error(String)
  }

  /// The exit status for an error, and what to say.
  static func ending(of error: any Error) -> (status: Int32, output: Output) {
    if let failure = CommandFailure(error) {
      return (failure.status.rawValue, failure.message.map(Output.error) ?? .nothing)
    }
    let code = KithCommand.exitCode(for: error)
    let message = KithCommand.fullMessage(for: error)
    if code.isSuccess { return (0, message.isEmpty ? .nothing : .data(message)) }
    let prefix = "Error: "
    let text = message.hasPrefix(prefix) ? String(message.dropFirst(prefix.count)) : message
    return (code.rawValue, text.isEmpty ? .nothing : .error(text))
  }
}
