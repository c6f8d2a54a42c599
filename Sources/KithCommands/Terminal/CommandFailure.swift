/// Why a command ends without having done what was asked: one line for people, a status for
/// programs.
struct CommandFailure: Error, Equatable, CustomStringConvertible {
  /// The status that the process ends with.
  let status: CommandStatus
  /// What happened and what to do, without `kith:` before it. Nil where all was said already.
  let message: String?

  init(_ status: CommandStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  var description: String { message ?? "status \(status.rawValue)" }
}
