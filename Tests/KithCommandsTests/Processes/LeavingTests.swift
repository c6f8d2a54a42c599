import Foundation
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Leaving an account", .timeLimit(.minutes(5)))
struct LeavingTests {
  /// The files that hold a device in a directory.
  private func files(_ directory: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory.path)
      .filter { $0 == "secrets" || $0.hasPrefix("kith.sqlite") || $0 == "control" }
  }

  @Test func `keys and data go, the account stays, and another can be joined`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.join("beta"))
    let unsure = try await household.run(beta, "account", "leave")
    #expect(unsure.status == CommandStatus.refused.rawValue && unsure.talk.contains("--yes"))
    let left = try await household.run(beta, "account", "leave", "--yes", "--json")
    #expect(left.status == 0 && left.output.contains(#""name": "beta""#), "\(left)")
    #expect(left.talk.contains("kith devices revoke beta"), "\(left)")
    #expect(try files(beta.directory).isEmpty)
    #expect(try await household.run(beta, "account", "list").output.isEmpty)
    let status = try await household.run(beta, "devices")
    #expect(status.status == CommandStatus.directory.rawValue, "\(status)")
    let again = try await household.run(beta, "account", "leave", "--yes")
    #expect(again.status == CommandStatus.notFound.rawValue, "\(again)")
    // The other device still counts it.
    #expect(try await household.run(alpha, "devices").output.contains("beta"))
    let created = try await household.run(beta, "account", "create", "--name", "beta")
    #expect(created.status == 0, "\(created)")
  }

  @Test func `writes that no other device has are not lost without force`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.join("beta"))
    #expect(try await household.run(beta, "set", "theme", "dark").status == 0)
    let refused = try await household.run(beta, "account", "leave", "--yes")
    #expect(refused.status == CommandStatus.refused.rawValue, "\(refused)")
    #expect(refused.talk.contains("last writes in the store \"default\" (1)"), "\(refused)")
    #expect(try await household.run(beta, "get", "theme").output == "dark\n")
    #expect(try await household.run(beta, "account", "leave", "--yes", "--force").status == 0)
    // Nor those of an account's only device.
    #expect(try await household.run(beta, "account", "create", "--name", "only").status == 0)
    let only = try await household.run(beta, "account", "leave", "--yes")
    #expect(only.status == CommandStatus.refused.rawValue, "\(only)")
    #expect(only.talk.contains("No other device is in the account"), "\(only)")
    #expect(try files(alpha.directory).contains("secrets"))
  }

  @Test func `a running node is left alone without force, and follows with it`() async throws {
    let household = try Household()
    _ = try await household.create("alpha")
    let beta = try await household.join("beta")
    try await household.start(beta, peers: [])
    let refused = try await household.run(beta, "account", "leave", "--yes")
    #expect(refused.status == CommandStatus.directory.rawValue, "\(refused)")
    #expect(refused.talk.contains("its node runs"), "\(refused)")
    let forced = try await household.run(beta, "account", "leave", "--yes", "--force")
    #expect(forced.status == 0, "\(forced)")
    #expect(try files(beta.directory).isEmpty)
    #expect(try await household.stop(beta)?.status == 0)
  }

  @Test func `an account that is signed out is left by its id`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.join("beta"))
    let first = try await household.run(beta, "account", "list").output.split(separator: "\n")
    let id = String(try #require(first.last?.split(separator: " ").first))
    #expect(try await household.run(beta, "account", "sign-out").status == 0)
    let second = try await household.run(beta, "account", "create", "--name", "other")
    #expect(second.status == 0, "\(second)")
    #expect(try await household.run(beta, "set", "theme", "kept").status == 0)
    let left = try await household.run(beta, "account", "leave", id, "--yes")
    #expect(left.status == 0, "\(left)")
    let rest = try await household.run(beta, "account", "list").output
    #expect(!rest.contains(id) && rest.contains("signed in"), "\(rest)")
    #expect(try await household.run(beta, "get", "theme").output == "kept\n")
    // Also the one in a directory below: nothing of it stays.
    let forced = try await household.run(beta, "account", "leave", "--yes", "--force")
    #expect(forced.status == 0, "\(forced)")
    let below = beta.directory.appending(path: "accounts").path
    #expect(try FileManager.default.contentsOfDirectory(atPath: below).isEmpty)
    #expect(try files(alpha.directory).contains("secrets"))
  }
}
