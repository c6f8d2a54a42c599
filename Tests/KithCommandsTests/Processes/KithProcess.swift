import Foundation
import Glibc
import KithTestSupport

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
