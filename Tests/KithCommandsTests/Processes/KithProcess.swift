import Foundation
import Glibc

/// A `kith` that a test started: the real program, in a process of its own.
final class KithProcess {
  /// What a finished command said, and how it ended.
  struct Result {
    var status: Int32
    var output: String
    var talk: String
  }

  private let process = Process()
  private let output: URL
  private let talk: URL

  /// The program beside the test bundle.
  static var program: URL {
    Bundle.module.bundleURL.deletingLastPathComponent().appending(path: "kith")
  }

  /// Starts `kith` with arguments and no environment but what is given; by way of a command that
  /// becomes it (such as `ip netns exec NAME`), if there is one.
  init(
    _ arguments: [String], in directory: URL, input: Data? = nil,
    environment: [String: String] = [:], launcher: [String] = []
  ) throws {
    let name = UUID().uuidString
    output = directory.appending(path: "\(name).out")
    talk = directory.appending(path: "\(name).err")
    for file in [output, talk] {
      _ = FileManager.default.createFile(atPath: file.path, contents: nil)
    }
    process.executableURL = launcher.isEmpty ? Self.program : URL(filePath: "/usr/bin/env")
    process.arguments = launcher.isEmpty ? arguments : launcher + [Self.program.path] + arguments
    process.environment = ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": directory.path]
      .merging(environment) { _, new in new }
    process.currentDirectoryURL = directory
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: talk)
    if let input {
      let file = directory.appending(path: "\(name).in")
      try input.write(to: file)
      process.standardInput = try FileHandle(forReadingFrom: file)
    } else {
      process.standardInput = FileHandle.nullDevice
    }
    try process.run()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    // What libfaketime leaves of a process that was killed.
    for name in ["faketime_shm_\(id)", "sem.faketime_sem_\(id)"] { unlink("/dev/shm/\(name)") }
  }

  /// The process's id.
  var id: Int32 { process.processIdentifier }
  /// Whether it has not ended.
  var isRunning: Bool { process.isRunning }
  /// What it has said so far on standard error.
  var saidSoFar: String { (try? String(contentsOf: talk, encoding: .utf8)) ?? "" }
  /// What it has printed so far.
  var printedSoFar: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }

  /// Sends a signal to this process, and no other.
  func send(_ signal: Int32) {
    if process.isRunning { kill(process.processIdentifier, signal) }
  }

  /// What the system says it does: `R` runs, `S` sleeps, `T` is stopped; nil where it is gone.
  var state: String? {
    (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8))
      .flatMap { $0.split(separator: ")").last?.split(separator: " ").first.map(String.init) }
  }

  /// Kills this process and waits until it is gone.
  func end() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Waits for the end, at most so long; kills the process after that.
  func wait(seconds: Double = 90) async throws -> Result {
    do {
      try await eventually("kith \(process.arguments?.first ?? "") to end", seconds: seconds) {
        !process.isRunning
      }
    } catch {
      send(SIGKILL)
      throw error
    }
    // A process that a signal ended has the status that a shell gives it.
    let isSignal = process.terminationReason == .uncaughtSignal
    return Result(
      status: process.terminationStatus + (isSignal ? 128 : 0), output: printedSoFar,
      talk: saidSoFar)
  }

  /// Runs a command to its end.
  static func run(
    _ arguments: [String], in directory: URL, input: Data? = nil,
    environment: [String: String] = [:]
  ) async throws -> Result {
    try await KithProcess(arguments, in: directory, input: input, environment: environment).wait()
  }
}

/// Something that a test waited for did not come.
struct NotInTime: Error, CustomStringConvertible {
  let description: String
}

/// Waits until something holds, looking every few milliseconds, at most so long.
func eventually(
  _ what: String, seconds: Double = 60, every milliseconds: Int = 5,
  _ holds: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + .milliseconds(Int(seconds * 1_000))
  while try await !holds() {
    guard ContinuousClock.now < end else {
      throw NotInTime(description: "waited \(seconds) s for \(what)")
    }
    try await Task.sleep(for: .milliseconds(milliseconds))
  }
}
