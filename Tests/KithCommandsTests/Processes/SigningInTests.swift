import Foundation
import KithTerminal
import Testing

@testable import KithCommands

@Suite("Signing in and out by hand", .timeLimit(.minutes(5)))
struct SigningInTests {
  @Test func `each account and the local stores keep their data`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    func kith(_ arguments: String...) async throws -> KithProcess.Result {
      try await KithProcess.run(
        arguments + ["--directory", member.directory.path], in: household.root)
    }
    #expect(try await kith("set", "theme", "of one").status == 0)
    let one = try await kith("account", "list").output.split(separator: "\n")
    #expect(one.count == 2 && one[1].contains("signed in"))
    let id = try #require(one[1].split(separator: " ").first).prefix(8)

    let out = try await kith("account", "sign-out").talk
    #expect(out.contains("kith account sign-in \(id)"), "\(out)")
    #expect(try await kith("account", "sign-out").status == CommandStatus.directory.rawValue)
    #expect(try await kith("get", "theme").status == CommandStatus.notFound.rawValue)
    #expect(try await kith("set", "theme", "local", "fresh", "1").status == 0)
    #expect(try await kith("account", "list").output.contains("signed out"))
    for command in [["invite"], ["sync"], ["devices"], ["clock"]] {
      let refused = try await KithProcess.run(
        command + ["--directory", member.directory.path], in: household.root)
      #expect(refused.status == CommandStatus.directory.rawValue)
      #expect(refused.talk.contains("nobody is signed in here"), "\(refused)")
    }

    // Another account takes what is local, since it has nothing of its own.
    #expect(try await kith("account", "create", "--name", "again").output.contains("recovery key"))
    #expect(try await kith("ls").output == "fresh\ntheme\n")
    let listed = try await kith("account", "list").output.split(separator: "\n")
    #expect(
      listed.count == 3 && listed[1].contains("signed out") && listed[2].contains("signed in"))

    #expect(try await kith("account", "sign-in", "\(id)").status == 0)
    #expect(try await kith("get", "theme").output == "of one\n")
    #expect(try await kith("get", "fresh").status == CommandStatus.notFound.rawValue)
    // Two are known.
    let unnamed = try await kith("account", "sign-in")
    #expect(unnamed.status == CommandStatus.notFound.rawValue, "\(unnamed)")
    #expect(unnamed.talk.contains("several accounts"), "\(unnamed)")
    for wrong in ["ffffffffffff", ""] {
      let refused = try await kith("account", "sign-in", wrong)
      #expect(refused.status == CommandStatus.notFound.rawValue, "\(refused)")
    }
    #expect(try await kith("account", "list", "--json").output.contains(#""isSignedIn": true"#))
  }
}
