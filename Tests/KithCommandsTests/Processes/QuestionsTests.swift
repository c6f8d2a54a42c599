import Foundation
import Kith
import KithCore
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

/// The questions that a person is asked on a terminal, and the output there.
@Suite("Questions on a terminal", .timeLimit(.minutes(5)))
struct QuestionsTests {
  private let household: Household
  private let terminal: TestTerminal

  init() throws {
    household = try Household()
    terminal = try TestTerminal()
  }

  private func start(_ member: Household.Member, _ arguments: String...) throws -> KithProcess {
    try terminal.start(
      arguments + ["--directory", member.directory.path], in: household.root, showsOutput: true)
  }

  private func awaitShown(_ text: String) async throws {
    try await eventually("the terminal to show \(text)") { terminal.shown.contains(text) }
  }

  /// A `y` that was typed while something else went on took a device out for ever.
  @Test func `text typed before a question does not answer it`() async throws {
    let alpha = try await household.create("alpha")
    _ = try await household.join("beta")
    terminal.type("y\ny")
    let revoke = try start(alpha, "devices", "revoke", "beta")
    try await terminal.type("n\n", after: "Do it? [y/N] ")
    #expect(try await revoke.wait().status == CommandStatus.refused.rawValue)
    let shown = terminal.shown
    #expect(shown.contains("will be removed") && !shown.contains("is removed"), "\(shown)")
    // No log line, although the command has the directory open itself.
    #expect(!shown.contains("info kith"), "\(shown)")
    #expect(try await household.run(alpha, "devices").output.contains("beta"))

    let again = try start(alpha, "devices", "revoke", "beta")
    try await terminal.type("y\n", after: "Do it? [y/N] ")
    #expect(try await again.wait().status == 0)
    #expect(!terminal.shown.contains("info kith"), "\(terminal.shown)")
  }

  @Test func `a write during the question to leave is not lost`() async throws {
    _ = try await household.create("alpha")
    let beta = try await household.join("beta")
    let leave = try start(beta, "account", "leave")
    try await eventually("the question") { terminal.shown.hasSuffix("Do it? [y/N] ") }
    #expect(try await household.run(beta, "set", "theme", "dark").status == 0)
    terminal.type("y\n")
    #expect(try await leave.wait().status == CommandStatus.refused.rawValue)
    #expect(terminal.shown.contains("something was written meanwhile"), "\(terminal.shown)")
    #expect(try await household.run(beta, "get", "theme").output == "dark\n")
  }

  /// It stayed signed in to a directory without a device.
  @Test func `an account that is signed in during the question is signed out`() async throws {
    _ = try await household.create("alpha")
    let beta = try await household.join("beta")
    let list = try await household.run(beta, "account", "list").output.split(separator: "\n")
    let id = String(try #require(list.last?.split(separator: " ").first))
    #expect(try await household.run(beta, "account", "sign-out").status == 0)
    let leave = try start(beta, "account", "leave", id)
    try await eventually("the question") { terminal.shown.hasSuffix("Do it? [y/N] ") }
    #expect(try await household.run(beta, "account", "sign-in", id).status == 0)
    terminal.type("y\n")
    #expect(try await leave.wait().status == 0, "\(terminal.shown)")
    #expect(try await household.run(beta, "account", "list").output.isEmpty)
    let devices = try await household.run(beta, "devices")
    #expect(devices.status == CommandStatus.directory.rawValue, "\(devices)")
  }

  /// Starts a device that joins by the code that the terminal shows.
  private func startJoining() async throws -> KithProcess {
    try await awaitShown("kith join --peer ")
    let code = try #require(terminal.shown.firstMatch(of: /[0-9]{4}-[0-9]{4}/)?.0)
    let address = try #require(terminal.shown.firstMatch(of: /--peer (\S+)/)?.1)
    return try KithProcess(
      [
        "join", String(code), "--yes", "--peer", String(address), "--name", "beta", "--directory",
        household.root.appending(path: "beta").path,
      ], in: household.root)
  }

  /// The question stayed, and its answer ended the exchange of the next try with the same code.
  @Test func `the question whether a device is taken in ends when the device goes`() async throws {
    let alpha = try await household.create("alpha")
    let invite = try start(alpha, "invite", "--no-qr")
    let join = try await startJoining()
    try await awaitShown("Admit it? [y/N] ")
    join.end()
    #expect(try await invite.wait().status == CommandStatus.unreachable.rawValue)
    try await awaitShown("ended the exchange")
  }

  @Test func `nor whether a device is taken in`() async throws {
    let alpha = try await household.create("alpha")
    let invite = try start(alpha, "invite", "--no-qr")
    try await awaitShown("type this code into")
    terminal.type("y\n")
    try await awaitShown("y\r\n")
    let join = try await startJoining()
    try await terminal.type("n\n", after: "Admit it? [y/N] ")
    #expect(try await join.wait().status == CommandStatus.refused.rawValue)
    #expect(try await invite.wait().status == CommandStatus.refused.rawValue)
    #expect(!(try await household.run(alpha, "devices").output.contains("beta")))
  }

  @Test func `a wrong code may be typed again while tries are left`() async throws {
    let alpha = try await household.create("alpha")
    let (invitation, code, address) = try await household.invite(alpha)
    let wrong = try #require(
      (0..<10).lazy.map { "0000-010\($0)" }.first {
        (try? PairingCode(text: $0)) != nil && $0 != code
      })
    let beta = Household.Member(name: "beta", directory: household.root.appending(path: "beta"))
    let join = try start(beta, "join", "--peer", address, "--name", "beta")
    try await terminal.type(wrong + "\n", after: "Code: ")
    try await awaitShown("2 tries left")
    terminal.type("y\n")
    try await terminal.type(code + "\n", after: "Code: ")
    try await terminal.type("y\n", after: "Join it? [y/N] ")
    #expect(try await join.wait().status == 0, "\(terminal.shown)")
    #expect(try await invitation.wait().status == 0)
    #expect(terminal.shown.contains("Joined."))
  }

  @Test func `the third wrong code ends it`() async throws {
    let alpha = try await household.create("alpha")
    let (invitation, code, address) = try await household.invite(alpha)
    let others = (0..<100).map { "0000-01\($0 < 10 ? "0" : "")\($0)" }
      .filter { (try? PairingCode(text: $0)) != nil && $0 != code }
    let beta = Household.Member(name: "beta", directory: household.root.appending(path: "beta"))
    let join = try start(beta, "join", "--peer", address, "--name", "beta")
    for (index, other) in others.prefix(3).enumerated() {
      try await terminal.type(other + "\n", after: "Code: ")
      if index < 2 { try await awaitShown(index == 0 ? "2 tries left" : "1 try left") }
    }
    #expect(try await join.wait().status == CommandStatus.refused.rawValue, "\(terminal.shown)")
    #expect(try await invitation.wait().status == CommandStatus.refused.rawValue)
  }

  @Test func `a store of a new name is asked about`() async throws {
    let alpha = try await household.create("alpha")
    terminal.type("y\n")
    let declined = try start(alpha, "set", "--store", "com.exmaple.Editor", "k", "1")
    try await terminal.type("\n", after: "Create it? [y/N] ")
    #expect(try await declined.wait().status == CommandStatus.refused.rawValue)
    #expect(!(try await household.run(alpha, "status").output.contains("com.exmaple")))
    let wanted = try start(alpha, "set", "--store", "com.example.Editor", "k", "1")
    try await terminal.type("y\n", after: "Create it? [y/N] ")
    #expect(try await wanted.wait().status == 0, "\(terminal.shown)")
    #expect(
      try await household.run(alpha, "get", "--store", "com.example.Editor", "k").output == "1\n")
    // The usual one never is.
    #expect(try await start(alpha, "set", "k", "2").wait().status == 0)
  }

  @Test func `many keys are removed after a yes`() async throws {
    let alpha = try await household.create("alpha")
    #expect(try await household.run(alpha, "set", "e.a", "1", "e.b", "2").status == 0)
    let declined = try start(alpha, "rm", "--prefix", "e.")
    try await terminal.type("n\n", after: "Remove 2 keys of \"default\"? [y/N] ")
    #expect(try await declined.wait().status == CommandStatus.refused.rawValue)
    #expect(try await household.run(alpha, "ls").output == "e.a\ne.b\n")
    let wanted = try start(alpha, "rm", "--prefix", "e.")
    try await terminal.type("y\n", after: "Remove 2 keys of \"default\"? [y/N] ")
    #expect(try await wanted.wait().status == 0, "\(terminal.shown)")
    #expect(try await household.run(alpha, "set", "e.a", "1").status == 0)
    #expect(try await start(alpha, "rm", "--prefix", "e.", "--yes").wait().status == 0)
    #expect(try await household.run(alpha, "ls").output.isEmpty)
  }

  @Test func `a store is emptied after a yes`() async throws {
    let alpha = try await household.create("alpha")
    #expect(try await household.run(alpha, "set", "a", "1", "b", "2").status == 0)
    let question = "Remove 2 keys, all of \"default\", on all devices? [y/N] "
    let declined = try start(alpha, "stores", "rm", "default")
    try await terminal.type("n\n", after: question)
    #expect(try await declined.wait().status == CommandStatus.refused.rawValue)
    #expect(try await household.run(alpha, "ls").output == "a\nb\n")
    let wanted = try start(alpha, "stores", "rm", "default")
    try await terminal.type("y\n", after: question)
    #expect(try await wanted.wait().status == 0, "\(terminal.shown)")
    #expect(try await household.run(alpha, "ls").output.isEmpty)
  }

  @Test func `a typed user is seen, and a typed password is not`()
    async throws
  {
    let alpha = try await household.create("alpha")
    let added = try start(
      alpha, "carrier", "add", "webdav", "https://127.0.0.1:9/dav", "--only-here")
    try await terminal.type("anna\n", after: "User: ")
    try await terminal.type("hunter2\n", after: "Password: ")
    #expect(try await added.wait().status == CommandStatus.unreachable.rawValue)
    #expect(terminal.shown.contains("anna") && !terminal.shown.contains("hunter2"))
  }

  @Test func `a value moves no cursor and forges no message`() async throws {
    let alpha = try await household.create("alpha")
    let value = "\u{1B}]52;c;eA==\u{7}\u{9B}2J\u{202E}x\r\nkith: run this: rm"
    #expect(
      try await household.run(alpha, "set", "k", "-", "--type", "string", input: Data(value.utf8))
        .status == 0)
    #expect(try await start(alpha, "get", "k").wait().status == 0)
    let shown = terminal.shown
    #expect(shown == "\\u{1b}]52;c;eA==\\u{7}\\u{9b}2J\\u{202e}x\\u{d}\r\n  kith: run this: rm\r\n")
    for arguments in [["get", "k", "--json"], ["export"], ["ls", "-l"]] {
      let process = try terminal.start(
        arguments + ["--directory", alpha.directory.path], in: household.root, showsOutput: true)
      #expect(try await process.wait().status == 0)
    }
    let obeyed = terminal.shown.unicodeScalars.filter { scalar in
      scalar != "\r" && scalar != "\n" && CharacterEffect(scalar) == .obeyed
    }
    #expect(obeyed.isEmpty, "\(terminal.shown.debugDescription)")
    // Unchanged with `--raw`, and if standard output is no terminal.
    #expect(try await start(alpha, "get", "k", "--raw").wait().status == 0)
    #expect(terminal.shown.contains("\u{1B}]52;c;eA==\u{7}\u{9B}2J\u{202E}x"))
    #expect(try await household.run(alpha, "get", "k").output == value + "\n")
  }
}
