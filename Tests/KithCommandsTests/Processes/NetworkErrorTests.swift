import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

/// The messages that people get if an address cannot be listened on or reached.
@Suite("Errors of the network", .timeLimit(.minutes(5)))
struct NetworkErrorTests {
  private func say(
    _ household: Household, _ member: Household.Member, _ arguments: String...,
    status: CommandStatus = .unreachable
  ) async throws -> String {
    let result = try await KithProcess.run(
      arguments + ["--directory", member.directory.path], in: household.root)
    #expect(result.status == status.rawValue, "\(result)")
    #expect(!result.talk.contains("errno") && !result.talk.contains("Error"), "\(result.talk)")
    let brackets = (result.talk.count { $0 == "(" }, result.talk.count { $0 == ")" })
    #expect(brackets.0 == brackets.1, "\(result.talk)")
    return result.talk
  }

  @Test func `listening`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.create("beta"))
    try await household.start(alpha)
    let taken = try await say(
      household, beta, "run", "--listen", "127.0.0.1", "--port", "\(alpha.port)")
    let process = try #require(alpha.process?.id)
    #expect(taken.contains("port \(alpha.port) is taken by process \(process) (kith)"))
    let foreign = try await say(household, beta, "run", "--listen", "192.0.2.1")
    #expect(
      foreign.contains(
        "Cannot listen: 192.0.2.1 is no address of this host. Listen on one of its own"))
    #expect(!foreign.contains("port"))
    try await household.stop(alpha)
  }

  @Test func `joining`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    try await household.start(alpha)
    let beta = Household.Member(name: "beta", directory: household.root.appending(path: "beta"))
    // The token names two addresses, and the invitation is over.
    let invitation = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--address", "::1",
        "--directory", alpha.directory.path,
      ], in: household.root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }
    let token = invitation.printedSoFar.trimmingCharacters(in: .whitespacesAndNewlines)
    invitation.send(SIGTERM)
    _ = try await invitation.wait()
    let over = try await say(household, beta, "join", token, "--yes")
    #expect(
      over.contains(
        /nothing listens at 127\.0\.0\.1:([0-9]+), nothing listens at \[::1\]:\1; check the address/
      ),
      "\(over)")
    // An address as of a node: no invitation listens there, or at the usual port of invitations.
    let code = "0000-0000"
    let node = try await say(
      household, beta, "join", code, "--yes", "--peer", "127.0.0.77:1")
    #expect(
      node.contains("nothing listens at 127.0.0.77:1, nothing listens at 127.0.0.77:4115; check"),
      "\(node)")
    try await household.stop(alpha)
  }
}
