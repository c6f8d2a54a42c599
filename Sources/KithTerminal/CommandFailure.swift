/// The end of a command that failed: one line for people, a status for programs.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
  /// The exit status of the process.
  package let status: CommandStatus
  /// The cause and the remedy, without `kith:` before it. Nil if all was printed already.
  package let message: String?

  package init(_ status: CommandStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  package var description: String { message ?? "status \(status.rawValue)" }
}
