import Foundation
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("A node follows who signs in and out", .timeLimit(.minutes(5)))
struct SigningOutTests {
  @Test func `signed out nothing is exchanged, and signed in again it is`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.join("beta"))
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    let out = try await household.run(alpha, "account", "sign-out", "--json")
    #expect(out.status == 0 && out.output.contains(#""isSignedIn": false"#), "\(out)")
    #expect(!out.output.contains("servedBy"), "\(out)")
    try await eventually("alpha to be away") {
      try await beta.client.status().peers.isEmpty
    }
    try await beta.client.write([("far", 1)], in: Household.store)
    // The node goes on, for the local stores.
    let local = LocalClient(directory: alpha.directory.path + "/local")
    try await eventually("the local stores to be served") { (try? await local.status()) != nil }
    #expect(try await local.status().listening.isEmpty)
    #expect(try await household.run(alpha, "get", "far").status == CommandStatus.notFound.rawValue)
    let listed = try await household.run(alpha, "account", "list", "--json").output
    #expect(listed.contains(#""isSignedIn": false"#))
    let again = try await household.run(alpha, "account", "sign-in")
    #expect(again.status == 0 && again.talk.contains("Its node runs"), "\(again)")
    // It listens at its old address, so that beta finds it.
    try await eventually("alpha to have it") {
      (try? await alpha.client.value(forKey: "far", in: Household.store)) == 1
    }
    let result = try #require(try await household.stop(alpha))
    #expect(result.status == 0 && result.talk.contains("nobody is signed in"), "\(result)")
  }

  @Test func `a node that is started while nobody is signed in waits for somebody`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    #expect(try await household.run(alpha, "account", "sign-out").status == 0)
    let process = try KithProcess(
      [
        "run", "--directory", alpha.directory.path, "--listen", "127.0.0.1", "--port", "0",
        "--no-discovery",
      ], in: household.root)
    try await eventually("it to be ready") { process.saidSoFar.contains("ready, nobody") }
    let signedIn = try await household.run(alpha, "account", "sign-in")
    #expect(signedIn.status == 0 && signedIn.talk.contains("Its node runs"), "\(signedIn)")
    try await eventually("it to listen") { process.saidSoFar.contains("listening on 127.0.0.1") }
    process.send(SIGTERM)
    #expect(try await process.wait().status == 0)
  }
}
