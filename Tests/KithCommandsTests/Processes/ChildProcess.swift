import CLinux
import Foundation
import Glibc
import Synchronization

/// A process that a test started, and nobody else waits for.
///
/// Not Foundation's `Process`: its children inherit the files that other threads open at that
/// moment. If a pipe or a socket tells of one child's end, another child that runs on may keep it
/// open, and a thread that waits for the first child waits for ever. Here files are opened in the
/// child, everything else is closed there, and the system itself says when it has ended.
final class ChildProcess: Sendable {
  /// The process's id.
  let id: pid_t
  /// The status that `waitpid` gave at its end; nil until then.
  private let ended = Mutex<Int32?>(nil)

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - command: Its path, and its arguments.
  ///   - environment: The whole environment.
  ///   - directory: Its working directory.
  ///   - input: The file that it reads.
  ///   - output: The file that it prints to; made anew.
  ///   - talk: The file for standard error; made anew.
  /// - Throws: `POSIXError` if it cannot be started.
  init(
    _ command: [String], environment: [String: String], in directory: URL,
    input: String = "/dev/null", output: URL, talk: URL
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0)
    for (descriptor, file) in [(STDOUT_FILENO, output), (STDERR_FILENO, talk)] {
      posix_spawn_file_actions_addopen(
        &actions, descriptor, file.path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    posix_spawn_file_actions_addchdir_np(&actions, directory.path)

    let arguments = command.map { strdup($0) } + [nil]
    let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var id: pid_t = 0
    let status = posix_spawn(&id, command[0], &actions, nil, arguments, variables)
    guard status == 0 else { throw POSIXError(POSIXErrorCode(rawValue: status) ?? .ENOENT) }
    self.id = id
  }

  deinit {
    send(SIGKILL)
    waitUntilExit()
  }

  /// Whether it has not ended.
  var isRunning: Bool { status == nil }

  /// How it ended: what it exited with, or 128 and the signal, as in a shell; nil while it runs.
  var status: Int32? {
    ended.withLock { ended in
      if ended == nil { ended = wait(WNOHANG) }
      return ended.map { $0 & 0x7f == 0 ? ($0 >> 8) & 0xff : 128 + ($0 & 0x7f) }
    }
  }

  /// Sends a signal to this process, and no other.
  func send(_ signal: Int32) {
    ended.withLock { ended in
      // Its id is its own until it has been waited for.
      if ended == nil { ended = wait(WNOHANG) }
      if ended == nil { kill(id, signal) }
    }
  }

  /// Blocks until it has ended; only for commands that end at once.
  func waitUntilExit() {
    ended.withLock { ended in
      if ended == nil { ended = wait(0) }
    }
  }

  private func wait(_ options: Int32) -> Int32? {
    var status: Int32 = 0
    while true {
      switch waitpid(id, &status, options) {
      case id: return status
      case 0: return nil
      default: if errno != EINTR { return 0 }
      }
    }
  }
}
