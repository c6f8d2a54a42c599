import Foundation
import Glibc
import KithTerminal
import Testing

@testable import KithCommands

@Suite("A device under a passphrase", .timeLimit(.minutes(5)))
struct PassphraseTests {
  private let household: Household
  private let member: Household.Member
  private let file: URL

  init() async throws {
    household = try Household()
    member = try await household.create("alpha")
    file = household.root.appending(path: "passphrase")
    try write("correct horse\n", to: file)
  }

  private func write(_ text: String, to file: URL, mode: mode_t = 0o600) throws {
    try Data(text.utf8).write(to: file)
    chmod(file.path, mode)
  }

  private func kith(
    _ arguments: String..., environment: [String: String] = [:]
  ) async throws -> KithProcess.Result {
    try await KithProcess.run(
      arguments + ["--directory", member.directory.path], in: household.root,
      environment: environment)
  }

  /// Every way in which no person is asked.
  @Test func `every command takes it from where it lies, and tells a wrong one`() async throws {
    let locked = try await kith("account", "lock", "--passphrase-file", file.path, "--json")
    #expect(locked.status == 0 && locked.output.contains(#""underPassphrase": true"#), "\(locked)")
    let none = try await kith("ls")
    #expect(none.status == CommandStatus.passphrase.rawValue)
    #expect(none.talk.contains("under a passphrase") && none.talk.contains("--passphrase-file"))

    let credentials = household.root.appending(path: "credentials")
    try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
    // As systemd makes them for a user's service.
    try write("correct horse", to: credentials.appending(path: "kith-passphrase"), mode: 0o440)
    for environment in [
      ["KITH_PASSPHRASE_FILE": file.path], ["CREDENTIALS_DIRECTORY": credentials.path],
      ["KITH_PASSPHRASE": "correct horse"],
      // The first counts.
      ["KITH_PASSPHRASE_FILE": file.path, "KITH_PASSPHRASE": "wrong"],
      ["CREDENTIALS_DIRECTORY": household.root.path, "KITH_PASSPHRASE": "correct horse"],
    ] {
      let result = try await kith("ls", environment: environment)
      #expect(result.status == 0, "\(environment): \(result)")
    }
    for environment in [["KITH_PASSPHRASE": "wrong"], ["KITH_PASSPHRASE_FILE": "/nowhere"]] {
      let result = try await kith("ls", environment: environment)
      #expect(result.status == CommandStatus.passphrase.rawValue, "\(environment): \(result)")
      #expect(!result.talk.contains("wrong\n") && !result.talk.contains("correct horse"))
    }
    try write("correct horse", to: file, mode: 0o640)
    let loose = try await kith("ls", "--passphrase-file", file.path)
    #expect(loose.status == CommandStatus.passphrase.rawValue)
    #expect(loose.talk.contains("chmod 600 '\(file.path)'"))
  }

  @Test func `a node that runs serves commands without it`() async throws {
    #expect(try await kith("account", "lock", "--passphrase-file", file.path).status == 0)
    member.environment = ["KITH_PASSPHRASE_FILE": file.path]
    try await household.start(member)
    #expect(try await kith("set", "theme", "dark").status == 0)
    #expect(try await kith("get", "theme").output == "dark\n")
    let running = try await kith("account", "unlock", "--passphrase-file", file.path)
    #expect(running.status == CommandStatus.directory.rawValue)
    #expect(running.talk.contains("in use by process"))
    try await household.stop(member)
    #expect(try await kith("account", "unlock", "--passphrase-file", file.path).status == 0)
    #expect(try await kith("get", "theme").output == "dark\n")
    #expect(try await kith("account", "unlock").status == CommandStatus.refused.rawValue)
  }

  @Test func `a new device can be under one from the beginning`() async throws {
    let directory = household.root.appending(path: "other").path
    let made = try await KithProcess.run(
      [
        "account", "create", "--lock", "--new-passphrase-file", file.path, "--directory", directory,
      ], in: household.root)
    #expect(made.status == 0)
    let refused = try await KithProcess.run(["ls", "--directory", directory], in: household.root)
    #expect(refused.status == CommandStatus.passphrase.rawValue)
    let usage = try await KithProcess.run(
      ["account", "create", "--new-passphrase-file", file.path], in: household.root)
    #expect(usage.status == CommandStatus.usage.rawValue)
  }

  @Test func `on a terminal it is asked for without being shown`() async throws {
    let terminal = try TestTerminal()
    let directory = ["--directory", member.directory.path]
    let mistyped = try terminal.start(["account", "lock"] + directory, in: household.root)
    try await terminal.type("horse\n", after: "New passphrase: ")
    try await terminal.type("house\n", after: "Again: ")
    let differing = try await mistyped.wait()
    #expect(differing.status == CommandStatus.passphrase.rawValue)
    #expect(differing.talk.contains("The two differ"))
    #expect(try await kith("ls").status == 0)

    let lock = try terminal.start(["account", "lock"] + directory, in: household.root)
    // Mistyped, and mended.
    try await terminal.type("pferdé\u{7F}\u{15}correct horsé\u{7F}e\n", after: "New passphrase: ")
    try await terminal.type("correct horse\n", after: "Again: ")
    let locked = try await lock.wait()
    #expect(locked.status == 0, "\(locked)")
    #expect(try await kith("ls", "--passphrase-file", file.path).status == 0)

    let list = try terminal.start(["ls"] + directory, in: household.root)
    try await terminal.type("correct horse\r", after: "Passphrase: ")
    #expect(try await list.wait().status == 0)
    let givenUp = try terminal.start(["ls"] + directory, in: household.root)
    try await terminal.type("corr\u{03}", after: "Passphrase: ")
    #expect(try await givenUp.wait().status == CommandStatus.passphrase.rawValue)
    #expect(!terminal.shown.contains("corr") && !terminal.shown.contains("ho"))

    let change = try terminal.start(
      ["account", "lock", "--change"] + directory, in: household.root)
    try await terminal.type("correct horse\n", after: "Passphrase: ")
    try await terminal.type("battery staple\n", after: "New passphrase: ")
    try await terminal.type("battery staple\n", after: "Again: ")
    let changed = try await change.wait()
    #expect(changed.status == 0, "\(changed)")
    let old = try await kith("ls", "--passphrase-file", file.path)
    #expect(old.status == CommandStatus.passphrase.rawValue)
  }
}
