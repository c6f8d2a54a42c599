import Foundation
import Testing

@testable import KithCommands

/// The effects of a power cut on the list of accounts, derived from the order of the system calls.
@Suite("Small files survive a power cut", .timeLimit(.minutes(5)))
struct SmallFileTests {
  /// Whether processes may be traced here.
  private static let traces = (try? Shell.run("strace", "-o", "/dev/null", "true")) != nil

  @Test(.enabled(if: traces, "strace is not there, or may not trace"))
  func `a file is on the disk before it takes another's place, its name after`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let trace = household.root.appending(path: "trace")
    let result = try await KithProcess(
      ["account", "sign-out", "--directory", member.directory.path], in: household.root,
      launcher: [
        "strace", "-f", "-y", "-o", trace.path, "-e",
        "trace=fsync,fdatasync,write,rename,renameat,renameat2",
      ]
    ).wait()
    #expect(result.status == 0, "\(result)")
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let new = "accounts.json.new"
    let renamed = try #require(
      lines.firstIndex { $0.contains("rename") && $0.contains(new) }, "\(lines.suffix(20))")
    let written = try #require(
      lines.firstIndex { $0.contains("write(") && $0.contains("\(new)>") })
    let synced = lines.firstIndex { $0.contains("sync(") && $0.contains("\(new)>") }
    #expect(synced.map { written < $0 && $0 < renamed } == true)
    let directory = "\(member.directory.path.trimmingSuffix("/"))>"
    #expect(
      lines[renamed...].contains { $0.contains("sync(") && $0.contains(directory) },
      "\(lines[renamed...])")
  }
}

extension String {
  /// The text without an ending, if it has it.
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
