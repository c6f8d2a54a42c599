/// The end of a failed command: one line for people, a status for programs.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
  package let status: CommandStatus
  /// Without `kith:` before it. Nil if all was printed already.
  package let message: String?

  package init(_ status: CommandStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  package var description: String { message ?? "status \(status.rawValue)" }
}
