internal import Foundation
import KithTestSupport
import Synchronization

/// A script of `Servers`, which answers with a line of JSON when it is ready and after each command. It
/// ends, with all that it started, when its input ends: at the latest with this process.
final class ScriptProcess: Sendable {
  struct Reply: Decodable, Sendable {
    var ports: [String: Int]?
    var folder: String?
    var missing: String?
    var failed: String?
  }

  static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  /// Where `Tests/carrier-servers` puts the servers of PyPI.
  static let venv = tests.appending(path: "../../.build/carrier-servers").standardized.path

  /// The script's first answer.
  let reply: Reply
  private let process: Mutex<Process>
  private let input: FileHandle
  private let output: FileHandle

  /// Starts a script and waits for its first answer, without holding up one of Swift's threads.
  init(_ script: String, _ arguments: [String]) async throws {
    let process = Process()
    let (input, output) = (Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      ["python3", Self.tests.appending(path: "Servers/\(script)").path] + arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    self.input = input.fileHandleForWriting
    self.output = output.fileHandleForReading
    reply = try await Self.read(self.output)
    self.process = Mutex(process)
  }

  /// Gives a command and waits for its answer.
  func command(_ command: String) async throws {
    try input.write(contentsOf: Data("\(command)\n".utf8))
    _ = try await Self.read(output)
  }

  deinit {
    try? input.close()
    process.withLock { $0.waitUntilExit() }
  }

  private static func read(_ output: FileHandle) async throws -> Reply {
    let line = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        var line = Data()
        while let byte = try? output.read(upToCount: 1), byte != Data("\n".utf8) { line += byte }
        continuation.resume(returning: line)
      }
    }
    return try JSONDecoder().decode(Reply.self, from: line)
  }
}
