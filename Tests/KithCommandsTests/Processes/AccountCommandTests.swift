import Foundation
import Kith
import KithTerminal
import KithTestSupport
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
    for (wrong, status) in [("ffffffffffff", CommandStatus.notFound), ("", .usage)] {
      let refused = try await kith("account", "sign-in", wrong)
      #expect(refused.status == status.rawValue, "\(refused)")
    }
    #expect(try await kith("account", "list", "--json").output.contains(#""isSignedIn": true"#))
  }
}

@Suite("A node follows who signs in and out", .timeLimit(.minutes(5)))
struct SigningOutTests {
  @Test func `signed out nothing is exchanged, and signed in again it is`() async throws {
    let household = try Household()
    let (alpha, beta) = (try await household.create("alpha"), try await household.join("beta"))
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    let watch = try KithProcess(
      ["watch", "--directory", alpha.directory.path], in: household.root)
    try await eventually("it to watch") { watch.saidSoFar.contains("watching") }
    let out = try await household.run(alpha, "account", "sign-out", "--json")
    #expect(out.status == 0 && out.output.contains(#""isSignedIn": false"#), "\(out)")
    #expect(!out.output.contains("servedBy"), "\(out)")
    try await eventually("alpha to be away") {
      try await beta.client.status().peers.isEmpty
    }
    try await beta.client.write([("far", 1)], in: Household.store)
    // The node goes on, for the local stores.
    let watched = try await watch.wait()
    #expect(watched.status == CommandStatus.unreachable.rawValue, "\(watched)")
    #expect(watched.talk.contains("signed in or out"), "\(watched)")
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

  /// The list of accounts, which only the device itself told, was read before force was looked at.
  @Test(arguments: [false, true])
  func `an only account is left with force though its device does not open`(
    isDamaged: Bool
  ) async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    if isDamaged {
      try Data("damaged".utf8).write(to: alpha.directory.appending(path: "secrets"))
    } else {
      let file = household.root.appending(path: "passphrase")
      try Data("correct horse\n".utf8).write(to: file)
      chmod(file.path, 0o600)
      let locked = try await household.run(
        alpha, "account", "lock", "--passphrase-file", file.path)
      #expect(locked.status == 0, "\(locked)")
    }
    func leave(_ more: String...) async throws -> KithProcess.Result {
      try await KithProcess.run(
        ["account", "leave", "--directory", alpha.directory.path] + more, in: household.root,
        environment: ["KITH_PASSPHRASE": "wrong"])
    }
    for refused in [try await leave("--yes"), try await leave("--force")] {
      #expect(refused.status != 0, "\(refused)")
      #expect(try files(alpha.directory).contains("secrets"))
    }
    let left = try await leave("--force", "--yes")
    #expect(left.status == 0 && left.talk.contains("its own writes may be lost"), "\(left)")
    #expect(try files(alpha.directory).isEmpty)
    let created = try await household.run(alpha, "account", "create", "--name", "again")
    #expect(created.status == 0, "\(created)")
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
