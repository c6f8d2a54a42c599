/// Why a command ends without having done what was asked: one line for people, a status for
/// programs.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
  /// The status that the process ends with.
  package let status: CommandStatus
  /// What happened and what to do, without `kith:` before it. Nil where all was said already.
  package let message: String?

  package init(_ status: CommandStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  package var description: String { message ?? "status \(status.rawValue)" }
}
