import CLinux
import Foundation
import Glibc
import KithTerminal

/// The command of `kith watch --exec`, which the shell runs for each change.
struct ChangeCommand: Sendable {
  let text: String

  /// Blocks until the command has ended. If it fails, says so; if it cannot be started, exits the
  /// process.
  func runOrExit(_ line: String, _ console: Console) {
    do throws(CommandFailure) {
      let status = try run(line + "\n")
      if status != 0 { console.warn("the command ended with status \(status)") }
    } catch {
      console.warn(error.description)
      exit(error.status.rawValue)
    }
  }

  /// Returns the exit status, or 128 and the signal, as a shell does.
  private func run(_ input: String) throws(CommandFailure) -> Int32 {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Self.failure(errno) }
    let child = start(reading: ends[0])
    close(ends[0])
    // The command may end without reading: then writing fails.
    signal(SIGPIPE, SIG_IGN)
    var rest = Array(input.utf8)[...]
    while child.id > 0, !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(ends[1], $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { break }
      rest = rest.dropFirst(max(0, count))
    }
    close(ends[1])
    guard child.id > 0 else { throw Self.failure(child.error) }
    var status: Int32 = 0
    while waitpid(child.id, &status, 0) < 0 && errno == EINTR {}
    let killer = status & 0x7f
    return killer == 0 ? (status >> 8) & 0xff : 128 + killer
  }

  /// Starts the shell. It gets the standard files only, and may be ended by SIGPIPE.
  private func start(reading input: Int32) -> (id: pid_t, error: Int32) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // Threads of the concurrency pool block signals, which the shell would inherit.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    let words = ["sh", "-c", text]
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let environment = ProcessInfo.processInfo.environment
    let variables: [UnsafeMutablePointer<CChar>?] =
      environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var id: pid_t = 0
    let error = posix_spawn(&id, "/bin/sh", &actions, &attributes, arguments, variables)
    return (error == 0 ? id : 0, error)
  }

  private static func failure(_ code: Int32) -> CommandFailure {
    CommandFailure(.failure, "the command cannot be started: \(String(cString: strerror(code)))")
  }
}
