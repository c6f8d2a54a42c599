import CLinux
import FoundationEssentials
import Glibc
import KithTerminal

/// A program of the host that this one starts.
struct HostProgram: Sendable {
  private let id: pid_t

  /// Starts a program that is searched for in `PATH`, with this process's variables. It gets the
  /// standard files only, and may be ended by SIGPIPE.
  ///
  /// `input`: its standard input; nil: the null device. `output`: its standard output and error; nil:
  /// those of this process.
  init(_ words: [String], input: Int32? = nil, output: Int32? = nil) throws(CommandFailure) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    for file in [STDOUT_FILENO, STDERR_FILENO] {
      if let output { posix_spawn_file_actions_adddup2(&actions, output, file) }
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // Threads of the concurrency pool block signals, which the program would inherit.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let environment = ProcessInfo.processInfo.environment
    let variables: [UnsafeMutablePointer<CChar>?] =
      environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var id: pid_t = 0
    let code = posix_spawnp(&id, words[0], &actions, &attributes, arguments, variables)
    guard code == 0 else { throw Self.failure(words[0], code) }
    self.id = id
  }

  /// Blocks until the program has ended. Returns its exit status, or 128 and the signal, as a shell
  /// does. 127 if nobody knows it: this process was started so that its children leave no status.
  func wait() -> Int32 {
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0 {
      guard errno == EINTR else { return 127 }
    }
    let killer = status & 0x7f
    return killer == 0 ? (status >> 8) & 0xff : 128 + killer
  }

  /// Runs a program, and returns all that it writes to standard output and error, trimmed.
  static func run(_ words: [String]) throws(CommandFailure) -> (status: Int32, output: String) {
    let (reading, writing) = try pipe()
    defer { close(reading) }
    let started = Result { () throws(CommandFailure) in try Self(words, output: writing) }
    close(writing)
    let child = try started.get()
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 12)
    while true {
      let count = read(reading, &buffer, buffer.count)
      if count > 0 { output += buffer[..<count] } else if count == 0 || errno != EINTR { break }
    }
    return (child.wait(), String(decoding: output, as: UTF8.self).trimmed)
  }

  static func pipe() throws(CommandFailure) -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw failure("pipe", errno) }
    return (ends[0], ends[1])
  }

  private static func failure(_ program: String, _ code: Int32) -> CommandFailure {
    CommandFailure(.failure, "\(program) cannot be started: \(String(cString: strerror(code)))")
  }
}
