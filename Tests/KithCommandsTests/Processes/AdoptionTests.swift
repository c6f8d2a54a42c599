import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

/// Writes that were made while nobody was signed in go into the account that somebody signs in to,
/// before signing in is reported as done, and nowhere else.
@Suite("Writes made while nobody is signed in", .timeLimit(.minutes(5)))
struct AdoptionTests {
  /// A directory in which nobody is signed in, and commands on it.
  private struct Newcomer {
    let household: Household
    let directory: URL

    init(_ household: Household, _ name: String = "new") {
      self.household = household
      directory = household.root.appending(path: name)
    }

    @discardableResult
    func kith(_ arguments: String..., input: Data? = nil) async throws -> KithProcess.Result {
      try await KithProcess.run(
        arguments + ["--directory", directory.path], in: household.root, input: input)
    }

    /// The value that a key shows; nil: it is missing.
    func value(_ key: String) async throws -> String? {
      let result = try await kith("get", key)
      guard result.status == 0 else {
        #expect(result.status == CommandStatus.notFound.rawValue, "\(result)")
        return nil
      }
      return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Signs out, writes a theme, and signs in again as a process does that is killed before it hands
    /// the write over.
    func signInWithoutHandingOver(_ theme: String) async throws {
      try await kith("account", "sign-out")
      try await kith("set", "theme", theme)
      let list = directory.appending(path: "accounts.json")
      let text = try String(contentsOf: list, encoding: .utf8)
      try text.replacing(#""devices""#, with: #""signedIn" : ".", "devices""#)
        .write(to: list, atomically: false, encoding: .utf8)
    }

    /// The ids of the accounts here, in the order of the first time.
    func accounts() async throws -> [String] {
      let lines = try await kith("account", "list").output.split(separator: "\n").dropFirst()
      return lines.compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    /// A program that serves the directory as libraries do, until the body has ended.
    func serving(_ body: () async throws -> Void) async throws {
      var configuration = Accounts.Configuration(directory: directory.path)
      configuration.hosts = ["127.0.0.1"]
      configuration.port = 0
      configuration.discoversPeers = false
      configuration.logger.logLevel = .critical
      let accounts = try Accounts(configuration)
      let serving = Task { try await accounts.run() }
      try await eventually("the program to serve") {
        let device = try Accounts.deviceDirectory(in: directory.path)
        return (try? await LocalClient(directory: device).status()) != nil
      }
      do {
        try await body()
      } catch {
        serving.cancel()
        _ = await serving.result
        throw error
      }
      serving.cancel()
      try await serving.value
      try accounts.close()
    }
  }

  @Test func `without an account all commands work here, and looking makes nothing`() async throws {
    let household = try Household()
    let new = Newcomer(household)
    for looking in [
      ["account", "list"], ["ls"], ["export"], ["status"], ["unshown"],
      ["history"],
      ["doctor", "--json"],
    ] {
      let result = try await KithProcess.run(
        looking + ["--directory", new.directory.path], in: household.root)
      #expect(result.status == 0, "\(looking): \(result)")
    }
    #expect(try await new.value("theme") == nil)
    #expect(try await new.kith("rm", "theme").status == CommandStatus.notFound.rawValue)
    #expect(!FileManager.default.fileExists(atPath: new.directory.path))

    let set = try await new.kith("set", "theme", "dark")
    #expect(set.status == 0 && set.talk.contains("stays on this host"), "\(set)")
    #expect(set.talk.contains("kith account create"), "\(set)")
    // Said once.
    #expect(try await new.kith("set", "size", "12").talk.isEmpty)
    #expect(try await new.value("theme") == "dark")
    #expect(try await new.kith("ls").output == "size\ntheme\n")
    #expect(try await new.kith("ls", "-S").output == "theme\nsize\n")
    #expect(try await new.kith("export").output.contains("dark"))
    #expect(try await new.kith("rm", "size").status == 0)
    let status = try await new.kith("status")
    #expect(status.output.contains("writes stay on this host"), "\(status)")
    #expect(status.output.contains("kith account create"), "\(status)")
    #expect(!status.output.contains("kith run"), "\(status)")
    #expect(try await !new.kith("status", "--json").output.contains(#""account""#))
    let doctor = try await new.kith("doctor")
    #expect(doctor.output.contains("nobody: writes stay on this host"), "\(doctor)")
    for (command, status) in [
      (["watch"], CommandStatus.unreachable), (["sync"], .directory), (["run"], .directory),
      (["invite"], .directory), (["devices"], .directory),
    ] {
      let refused = try await KithProcess.run(
        command + ["--directory", new.directory.path], in: household.root)
      #expect(refused.status == status.rawValue, "\(command): \(refused)")
      #expect(refused.talk.contains("nobody is signed in here"), "\(command): \(refused)")
      #expect(refused.talk.contains("kith account create"), "\(command): \(refused)")
    }
    #expect(try await new.accounts().isEmpty)
  }

  @Test func `creating an account takes them in`() async throws {
    let household = try Household()
    let new = Newcomer(household)
    try await new.kith("set", "theme", "dark")
    #expect(try await new.kith("account", "create", "--name", "a").status == 0)
    #expect(try await new.value("theme") == "dark")
    try await new.kith("account", "sign-out")
    #expect(try await new.value("theme") == nil)
  }

  @Test func `creating an account takes them in while a program has them open`() async throws {
    let household = try Household()
    let new = Newcomer(household)
    try await new.serving { () async throws -> Void in
      let set = try await new.kith("set", "theme", "dark")
      #expect(set.status == 0, "\(set.talk)")
      let create = try await new.kith("account", "create", "--name", "a")
      #expect(create.status == 0, "\(create.talk)")
      #expect(try await new.value("theme") == "dark")
    }
    #expect(try await new.value("theme") == "dark")
  }

  @Test func `joining an account takes them in`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    #expect(try await household.run(member, "set", "theme", "good").status == 0)
    let new = Newcomer(household, "beta")
    try await new.kith("set", "theme", "default", "other", "lost with it")
    try await new.kith("set", "fresh", "1")
    let beta = try await household.join("beta")
    #expect(try await new.value("fresh") == "1")
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    try await eventually("both to show the same") {
      let (one, other) = (try await household.export(member), try await household.export(beta))
      return one.contains("fresh") && one == other
    }
    #expect(try await new.value("theme") == "good")
    #expect(try await new.value("other") == nil)
  }

  @Test(arguments: ["import", "batch"])
  func `of keys that a file or a program brought, each loses alone`(way: String) async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    #expect(try await household.run(member, "set", "k07", "account").status == 0)
    let new = Newcomer(household, "beta")
    let keys = (0..<50).map { String(format: "k%02d", $0) }
    if way == "import" {
      let file = household.root.appending(path: "settings.json")
      try Data("{\(keys.map { "\"\($0)\": 1" }.joined(separator: ", "))}".utf8).write(to: file)
      #expect(try await new.kith("import", file.path).status == 0)
    } else {
      let lines = keys.map { #"{"do": "set", "key": "\#($0)", "value": 1}"# }
      let input = Data(lines.joined(separator: "\n").utf8)
      #expect(try await new.kith("batch", input: input).status == 0)
    }
    let beta = try await household.join("beta")
    #expect(try await new.kith("ls").output == keys.map { "\($0)\n" }.joined())
    #expect(try await new.value("k07") == "account")
    #expect(try await new.value("k08") == "1")
    let unshown = try await new.kith("unshown", "--json").output
    #expect(unshown.contains("k07") && !unshown.contains("k08"), "\(unshown)")
    #expect(beta.said.contains("1 write of this host did not get into the account"), "\(beta.said)")
    #expect(beta.said.contains("See: kith unshown"), "\(beta.said)")
  }

  @Test func `signing in takes them in, and only there, while the node follows`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    try await household.start(member)
    try await new.kith("set", "account", "its own")
    try await new.kith("account", "sign-out")
    #expect(try await new.value("account") == nil)
    #expect(try await new.kith("set", "theme", "local").status == 0)
    let signedIn = try await new.kith("account", "sign-in", "--json")
    #expect(signedIn.status == 0 && signedIn.output.contains(#""isSignedIn": true"#), "\(signedIn)")
    #expect(signedIn.talk.contains("Its node runs"), "\(signedIn)")
    #expect(try await new.value("theme") == "local")
    #expect(try await new.value("account") == "its own")
    #expect(try await new.kith("unshown").output.isEmpty)
    // A further account gets nothing of it.
    try await new.kith("account", "sign-out")
    #expect(try await new.kith("account", "create", "--name", "again").status == 0)
    #expect(try await new.value("theme") == nil)
    try await new.kith("account", "sign-out")
    #expect(try await new.value("theme") == nil)
    let first = try #require(try await new.accounts().first)
    #expect(try await new.kith("account", "sign-in", first).status == 0)
    #expect(try await new.value("theme") == "local")
    #expect(member.process?.isRunning == true)
  }

  /// The device is open in a process that knows nothing of signing in and out.
  @Test func `signing in hands them to a node that has the account's device`() async throws {
    let household = try Household()
    _ = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    var configuration = Node.Configuration(directory: new.directory.path)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    let node = try await Node.open(configuration)
    let serving = Task { try await node.run() }
    try await eventually("the node to answer") {
      (try? await LocalClient(directory: new.directory.path).status()) != nil
    }
    let out = try await new.kith("account", "sign-out", "--json")
    #expect(out.output.contains(#""servedBy": \#(getpid())"#), "\(out)")
    #expect(out.talk.contains("goes on exchanging"), "\(out)")
    #expect(try await new.kith("set", "theme", "local").status == 0)
    #expect(try await new.kith("account", "sign-in").status == 0)
    #expect(try await node.value(forKey: "theme", in: "default") == "local")
    serving.cancel()
    try await serving.value
    try node.close()
    try await new.kith("account", "sign-out")
    #expect(try await new.value("theme") == nil)
  }

  @Test func `a node takes in what is still owed before it is ready`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    try await new.signInWithoutHandingOver("local")
    try await household.start(member)
    #expect(try await member.client.value(forKey: "theme", in: "default") == "local")
  }

  @Test func `what is still owed to the account is a problem of its device`() async throws {
    let household = try Household()
    _ = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    try await new.signInWithoutHandingOver("local")
    for looking in [["status"], ["status", "--json"], ["status", "--check"], ["doctor"]] {
      let result = try await KithProcess.run(
        looking + ["--directory", new.directory.path], in: household.root)
      let words = result.output.split { " \n".contains($0) }.joined(separator: " ")
      #expect(words.contains("not in the account yet"), "\(looking): \(result)")
      let isJudging = looking != ["status"] && looking != ["status", "--json"]
      #expect(result.status == (isJudging ? CommandStatus.unhealthy : .success).rawValue)
    }
    try await new.kith("account", "sign-in")
    #expect(try await !new.kith("status").output.contains("not in the account yet"))
  }

  @Test func `local writes without their secrets are not dropped without a word`() async throws {
    let household = try Household()
    let new = Newcomer(household)
    try await new.kith("set", "theme", "dark")
    try FileManager.default.removeItem(at: new.directory.appending(path: "local/secrets"))
    let create = try await new.kith("account", "create", "--name", "a")
    #expect(create.status == CommandStatus.failure.rawValue, "\(create)")
    for result in [create, try await new.kith("account", "sign-out")] {
      #expect(result.talk.contains("local/secrets"), "\(result)")
      #expect(!result.talk.contains("revoke"), "\(result)")
    }
    #expect(try await new.kith("doctor").status == CommandStatus.unhealthy.rawValue)
  }

  /// Signing in succeeded, and then neither these writes nor signing out were to be had.
  @Test(arguments: ["secrets", "kith.sqlite"], [false, true])
  func `nobody signs in to a device that cannot be opened`(file: String, isEmpty: Bool) async throws
  {
    let household = try Household()
    _ = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    try await new.kith("account", "sign-out")
    try await new.kith("set", "theme", "local")
    let list = new.directory.appending(path: "accounts.json")
    let noted = try Data(contentsOf: list)
    let place = new.directory.appending(path: file)
    try FileManager.default.removeItem(at: place)
    if isEmpty {
      try Data().write(to: place)
      chmod(place.path, 0o600)
    }
    let refused = try await new.kith("account", "sign-in")
    #expect(refused.status == CommandStatus.failure.rawValue, "\(refused)")
    #expect(refused.talk.contains(place.path), "\(refused)")
    #expect(try Data(contentsOf: list) == noted)
    #expect(try await new.value("theme") == "local")
    #expect(try await new.kith("account", "list").output.contains("signed out, lacks \(file)"))
    let doctor = try await new.kith("doctor")
    #expect(doctor.status == CommandStatus.unhealthy.rawValue)
    #expect(doctor.output.contains(place.path), "\(doctor)")

    // As an earlier version left it.
    let text = String(decoding: noted, as: UTF8.self)
    try text.replacing(#""devices""#, with: #""signedIn" : ".", "devices""#)
      .write(to: list, atomically: false, encoding: .utf8)
    #expect(try await new.kith("get", "theme").status == CommandStatus.failure.rawValue)
    let out = try await new.kith("account", "sign-out")
    #expect(out.status == 0 && out.talk.contains("not in the account yet"), "\(out)")
    #expect(try await new.value("theme") == "local")
  }

  /// They are the account's that is signed in: nobody leaves it before it has them.
  @Test func `local values owed to an account go to it, not to the next one`() async throws {
    let household = try Household()
    _ = try await household.create("alpha")
    let new = Newcomer(household, "alpha")
    try await new.signInWithoutHandingOver("local")
    try await new.kith("account", "sign-out")
    #expect(try await new.kith("account", "create", "--name", "again").status == 0)
    #expect(try await new.value("theme") == nil)
    let first = try #require(try await new.accounts().first)
    try await new.kith("account", "sign-in", first)
    #expect(try await new.value("theme") == "local")
  }
}
