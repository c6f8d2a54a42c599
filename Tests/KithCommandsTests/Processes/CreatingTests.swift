import Foundation
import Glibc
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Beginning an account", .timeLimit(.minutes(5)))
struct CreatingTests {
  /// If the command is killed before it has printed the recovery key, no account has begun: nobody
  /// would ever see its key. The test holds the command at printing, with a pipe that takes
  /// nothing.
  @Test func `killed before its recovery key is printed there is no account`() async throws {
    let household = try Household()
    let directory = household.root.appending(path: "a")
    let pipe = household.root.appending(path: "pipe").path
    #expect(mkfifo(pipe, 0o600) == 0)
    let end = open(pipe, O_RDWR | O_NONBLOCK)
    defer { close(end) }
    let filling = [UInt8](repeating: 0, count: 4_096)
    while write(end, filling, filling.count) > 0 {}
    let process = try KithProcess(
      command: [
        "/bin/sh", "-c", "exec \"$0\" account create --name a --directory \"$1\" >\"$2\"",
        KithProcess.program.path, directory.path, pipe,
      ], in: household.root)
    let secrets = directory.path + "/secrets"
    try await eventually("it to be held at printing") {
      process.isRunning && Self.isWriting(process.id)
        && [secrets, secrets + ".new"].contains(where: FileManager.default.fileExists)
    }
    #expect(!FileManager.default.fileExists(atPath: secrets))
    process.end()
    let again = try await KithProcess.run(
      ["account", "create", "--name", "a", "--directory", directory.path], in: household.root)
    #expect(again.status == 0 && again.output.contains("recovery key"), "\(again)")
  }

  @Test func `a path that is too long for a node's socket is refused before there is an account`()
    async throws
  {
    let household = try Household()
    let directory = household.root.appending(path: String(repeating: "x", count: 100))
    let made = try await KithProcess.run(
      ["account", "create", "--directory", directory.path], in: household.root)
    #expect(made.status == CommandStatus.unreachable.rawValue, "\(made)")
    #expect(made.talk.contains("at most 107 are possible"), "\(made)")
    #expect(!FileManager.default.fileExists(atPath: directory.path))
  }

  /// Whether a thread of a process is in `write` (number 1 or 64) on standard output.
  private static func isWriting(_ process: Int32) -> Bool {
    let tasks = "/proc/\(process)/task"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return names.contains { name in
      let call = (try? String(contentsOfFile: "\(tasks)/\(name)/syscall", encoding: .utf8)) ?? ""
      return call.hasPrefix("1 0x1 ") || call.hasPrefix("64 0x1 ")
    }
  }
}
