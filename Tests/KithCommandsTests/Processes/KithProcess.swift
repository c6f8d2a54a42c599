import CLinux
import Foundation
import Glibc
import KithTestSupport
import Synchronization

/// A `kith` that a test started: the real program, in a process of its own.
final class KithProcess {
  /// The output and the exit status of a finished command.
  struct Result {
    var status: Int32
    var output: String
    var talk: String
  }

  private let process: ChildProcess
  private let name: String
  private let output: URL
  private let talk: URL

  /// The program beside the test bundle, or another build of it that `KITH_BINARY` names.
  static let program: URL =
    ProcessInfo.processInfo.environment["KITH_BINARY"].map { URL(filePath: $0) }
    ?? Bundle.module.bundleURL.deletingLastPathComponent().appending(path: "kith")

  /// The launcher that has root start the program as the user `nobody`. Nil if that cannot be.
  static let nobody: [String]? = {
    var path = program.path
    while path != "/" {
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & S_IXOTH != 0 else { return nil }
      path = (path as NSString).deletingLastPathComponent
    }
    guard geteuid() == 0, access("/usr/bin/setpriv", X_OK) == 0, let user = getpwnam("nobody")
    else { return nil }
    return ["setpriv", "--reuid=\(user.pointee.pw_uid)", "--clear-groups"]
  }()

  /// Starts `kith` with arguments and only the given environment; by way of a command that becomes
  /// it (such as `ip netns exec NAME`), if there is one.
  convenience init(
    _ arguments: [String], in directory: URL, input: Data? = nil,
    environment: [String: String] = [:], launcher: [String] = []
  ) throws {
    let program = launcher.isEmpty ? [] : ["/usr/bin/env"] + launcher
    try self.init(
      command: program + [Self.program.path] + arguments, in: directory, input: input,
      environment: environment)
  }

  /// Starts any command, by its path. Its standard input is the data, or a file.
  init(
    command: [String], in directory: URL, input: Data? = nil, inputFile: String = "/dev/null",
    environment: [String: String] = [:]
  ) throws {
    let file = directory.appending(path: UUID().uuidString)
    name = command.joined(separator: " ")
    output = file.appendingPathExtension("out")
    talk = file.appendingPathExtension("err")
    let source = file.appendingPathExtension("in")
    if let input { try input.write(to: source) }
    process = try ChildProcess(
      command,
      environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": directory.path]
        .merging(environment) { _, new in new },
      in: directory, input: input == nil ? inputFile : source.path, output: output, talk: talk)
  }

  deinit {
    end()
    // Files that libfaketime leaves of a process that was killed.
    for name in ["faketime_shm_\(id)", "sem.faketime_sem_\(id)"] { unlink("/dev/shm/\(name)") }
  }

  /// The process's id.
  var id: Int32 { process.id }
  /// Whether it has not ended.
  var isRunning: Bool { process.isRunning }
  /// Its standard error so far.
  var saidSoFar: String { (try? String(contentsOf: talk, encoding: .utf8)) ?? "" }
  /// Its standard output so far.
  var printedSoFar: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

  /// Sends a signal to this process, and no other.
  func send(_ signal: Int32) { process.send(signal) }

  /// Its state by the system: `R` runs, `S` sleeps, `T` is stopped; nil if the process is gone.
  var state: String? {
    (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8))
      .flatMap { $0.split(separator: ")").last?.split(separator: " ").first.map(String.init) }
  }

  /// Kills this process and waits until it is gone.
  func end() {
    process.send(SIGKILL)
    process.waitUntilExit()
  }

  /// Waits for the end, at most so long; kills the process after that.
  func wait(seconds: Double = 90) async throws -> Result {
    do {
      try await eventually("\(name.prefix(80)) to end", seconds: seconds) {
        !process.isRunning
      }
    } catch {
      send(SIGKILL)
      throw error
    }
    return Result(status: process.status ?? -1, output: printedSoFar, talk: saidSoFar)
  }

  /// Runs a command to its end.
  static func run(
    _ arguments: [String], in directory: URL, input: Data? = nil,
    environment: [String: String] = [:]
  ) async throws -> Result {
    try await KithProcess(arguments, in: directory, input: input, environment: environment).wait()
  }
}

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
