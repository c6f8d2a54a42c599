import Foundation
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Dumps of dconf", .timeLimit(.minutes(5)))
struct DconfTests {
  /// Imports a dump, after a dry run that must end alike; returns the status and the talk.
  private func load(
    _ dump: String, _ household: Household, _ member: Household.Member, _ words: String...
  ) async throws -> (status: Int32, output: String) {
    let file = household.root.appending(path: "dump").path
    try dump.write(toFile: file, atomically: true, encoding: .utf8)
    let command = ["import", file, "--directory", member.directory.path] + words
    let dry = try await KithProcess.run(command + ["--dry-run"], in: household.root)
    let real = try await KithProcess.run(command, in: household.root)
    #expect(dry.status == real.status, "\(dry) \(real)")
    return (real.status, real.output + real.talk)
  }

  private func export(
    _ household: Household, _ member: Household.Member
  ) async throws -> (lines: [Substring], talk: String) {
    let result = try await household.run(member, "export", "--format", "dconf")
    return (result.output.split(separator: "\n"), result.talk)
  }

  @Test func `as many keys as a store has keep their types, on all devices`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    let dump = (["[a]"] + (0..<1_024).map { "k\($0)=uint32 \($0)" }).joined(separator: "\n")
    #expect(try await load(dump, household, alpha).status == 0)
    for member in [alpha, beta] {
      try await household.start(member)
    }
    try await eventually("the types on the other device") {
      try await export(household, beta).lines.count { $0.contains("=uint32 ") } == 1_024
    }
    #expect(try await export(household, beta).talk.isEmpty)
    // The store is full: a dump of other values of the same keys still has its types.
    let other = (["[a]"] + (0..<1_024).map { "k\($0)=int64 \($0)" }).joined(separator: "\n")
    #expect(try await load(other, household, alpha).status == 0)
    #expect(try await export(household, alpha).lines.count { $0.contains("=int64 ") } == 1_024)
    // One key too many is refused alone, as the dry run says.
    #expect(try await load("[a]\nmore=uint32 1\nk0=uint32 1", household, alpha).status == 3)
    #expect(try await export(household, alpha).lines.contains("k0=uint32 1"))
    let keys = try await household.run(alpha, "ls", "--json").output
    #expect(!keys.contains("dconf"))
    #expect(try await household.run(alpha, "stores", "--all").output.contains("kith.") == false)
  }

  @Test func `a full store of bytes keeps its types, also while signed out`() async throws {
    let household = try Household()
    let alpha = Household.Member(
      name: "alpha", directory: household.root.appending(path: "alpha"))
    let text = String(repeating: "x", count: 250_000)
    let dump = (["[/]", "n=uint32 1"] + (0..<4).map { "k\($0)=('\(text)', uint32 2)" })
      .joined(separator: "\n")
    #expect(try await load(dump, household, alpha).status == 0)
    let lines = try await export(household, alpha).lines
    #expect(lines.count { $0.hasSuffix("', uint32 2)") } == 4 && lines.contains("n=uint32 1"))
  }

  @Test func `types that no dump told are named`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    #expect(try await load("[a]\nx=uint32 5\ny='text'", household, alpha).status == 0)
    #expect(try await export(household, alpha).talk.isEmpty)
    _ = try await household.run(alpha, "set", "a/x", "-1")
    _ = try await household.run(alpha, "set", "a/z", "5")
    _ = try await household.run(alpha, "set", "a/flag", "true")
    let talk = try await export(household, alpha).talk
    #expect(talk.contains("2 values") && talk.hasSuffix(": a/x, a/z\n"), "\(talk)")
  }
}
