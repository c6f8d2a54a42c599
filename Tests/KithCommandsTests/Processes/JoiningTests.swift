import Foundation
import Glibc
import Kith
import KithCore
import KithProxy
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Beginning an account", .timeLimit(.minutes(5)))
struct CreatingTests {
  /// If the command is killed before it has printed the recovery key, no account has begun: nobody
  /// would ever see its key. The test holds the command at printing, with a pipe that takes
  /// nothing.
  @Test func `killed before its recovery key is printed there is no account`() async throws {
    let household = try Household()
    let directory = household.root.appending(path: "a")
    let pipe = household.root.appending(path: "pipe").path
    #expect(mkfifo(pipe, 0o600) == 0)
    let end = open(pipe, O_RDWR | O_NONBLOCK)
    defer { close(end) }
    let filling = [UInt8](repeating: 0, count: 4_096)
    while write(end, filling, filling.count) > 0 {}
    let process = try KithProcess(
      command: [
        "/bin/sh", "-c", "exec \"$0\" account create --name a --directory \"$1\" >\"$2\"",
        KithProcess.program.path, directory.path, pipe,
      ], in: household.root)
    let secrets = directory.path + "/secrets"
    try await eventually("it to be held at printing") {
      process.isRunning && Self.isWriting(process.id)
        && [secrets, secrets + ".new"].contains(where: FileManager.default.fileExists)
    }
    #expect(!FileManager.default.fileExists(atPath: secrets))
    process.end()
    let again = try await KithProcess.run(
      ["account", "create", "--name", "a", "--directory", directory.path], in: household.root)
    #expect(again.status == 0 && again.output.contains("recovery key"), "\(again)")
  }

  /// The second one's node could not be reached.
  @Test func `two accounts work in a directory whose path is longer than a socket's address`()
    async throws
  {
    let household = try Household()
    let directory = household.root.appending(path: String(repeating: "x", count: 100))
    let member = try await household.create("alpha", in: directory)
    try await household.start(member)
    #expect(try await household.run(member, "set", "theme", "dark").status == 0)
    #expect(try await household.run(member, "account", "sign-out").status == 0)
    #expect(try await household.run(member, "account", "create", "--name", "again").status == 0)
    try await eventually("the node to follow") {
      let status = try await household.run(member, "status", "--json").output
      return status.contains("\"processID\"") && status.contains("/accounts/")
    }
    #expect(
      try await household.run(member, "get", "theme").status == CommandStatus.notFound.rawValue)
    try await household.stop(member)
  }

  /// Whether a thread of a process is in `write` (number 1 or 64) on standard output.
  private static func isWriting(_ process: Int32) -> Bool {
    let tasks = "/proc/\(process)/task"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return names.contains { name in
      let call = (try? String(contentsOfFile: "\(tasks)/\(name)/syscall", encoding: .utf8)) ?? ""
      return call.hasPrefix("1 0x1 ") || call.hasPrefix("64 0x1 ")
    }
  }
}

/// Joining brings the data, over real connections that are slow and break off.
@Suite("Joining", .timeLimit(.minutes(5)))
struct JoiningTests {
  private static let store = "com.example.test"

  /// A node with a store that was never published.
  private func household(keys: Int = 1_000) async throws -> (Household, Household.Member) {
    let household = try Household()
    let alpha = try await household.create("alpha")
    try await household.start(alpha)
    let value = PropertyListValue.string(String(repeating: "v", count: 900))
    let writes = (0..<keys).map { (key: "key.\($0)", value: Optional(value)) }
    try await alpha.client.write(writes, in: Self.store)
    return (household, alpha)
  }

  /// An invitation that waits, with its token and its port.
  private func invite(
    _ member: Household.Member, in household: Household
  ) async throws -> (process: KithProcess, token: String, port: Int) {
    let process = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory",
        member.directory.path,
      ], in: household.root)
    try await eventually("a token") { process.printedSoFar.hasSuffix("\n") }
    let text = process.printedSoFar.trimmingCharacters(in: .whitespacesAndNewlines)
    return (process, text, Int(try InvitationToken(text: text).port))
  }

  private func join(
    _ name: String, _ token: String, through port: Int, in household: Household
  ) throws -> KithProcess {
    try KithProcess(
      [
        "join", "-", "--name", name, "--peer", "127.0.0.1:\(port)", "--directory",
        household.root.appending(path: name).path,
      ], in: household.root, input: Data((token + "\n").utf8))
  }

  /// The keys that a device shows, with no node running.
  private func keys(of name: String, in household: Household) async throws -> Int {
    let result = try await KithProcess.run(
      ["ls", "--store", Self.store, "--directory", household.root.appending(path: name).path],
      in: household.root)
    return result.output.split(separator: "\n").count { $0.contains("key.") }
  }

  private func devices(_ member: Household.Member) async throws -> Set<String> {
    Set(try await member.client.status().devices.map(\.name))
  }

  @Test func `a device that joined has every key, offline`() async throws {
    let (household, alpha) = try await household(keys: 1_024)
    _ = try await household.join("beta")
    #expect(try await devices(alpha) == ["alpha", "beta"])
    try await household.stop(alpha)
    #expect(try await keys(of: "beta", in: household) == 1_024)
  }

  /// Killed early, in the middle of the data, near its end, and as soon as its directory exists.
  @Test(arguments: [0.0, 0.05, 0.5, 0.9, 1.0])
  func `a joiner that is killed leaves nothing, or a whole device`(at part: Double) async throws {
    let (household, alpha) = try await household()
    let directory = household.root.appending(path: "beta")
    // Written before: it is the account's in any case, once.
    for arguments in [["early", "1"], ["key.0", "mine"]] {
      let set = try await KithProcess.run(
        ["set"] + arguments + ["--store", Self.store, "--create", "--directory", directory.path],
        in: household.root)
      #expect(set.status == 0, "\(set)")
    }
    let invitation = try await invite(alpha, in: household)
    try await FaultyProxy.with(target: invitation.port) { proxy in
      proxy.set(.init(bytesPerSecond: 2_000_000))
      let joining = try join("beta", invitation.token, through: proxy.port, in: household)
      let secrets = directory.appending(path: "secrets").path
      try await eventually("the moment to kill it") {
        part == 1
          ? FileManager.default.fileExists(atPath: secrets) || !joining.isRunning
          : Double(proxy.counters.backwardBytes) >= part * 1_000_000
      }
      joining.send(SIGKILL)
      _ = try await joining.wait()
    }
    // An invitation whose device did not even shake hands goes on.
    if part == 0 { invitation.process.send(SIGTERM) }
    _ = try await invitation.process.wait()
    if !FileManager.default.fileExists(atPath: directory.appending(path: "secrets").path) {
      #expect(try await devices(alpha) == ["alpha"])
      _ = try await household.join("beta")
    }
    #expect(try await keys(of: "beta", in: household) == 1_000)
    let beta = household.members.first { $0.name == "beta" } ?? household.add("beta")
    try await household.start(beta)
    try await eventually("both to know each other") {
      try await devices(alpha) == ["alpha", "beta"]
    }
    try await eventually("the early write") {
      try await alpha.client.value(forKey: "early", in: Self.store) != nil
    }
    #expect(try await alpha.client.value(forKey: "key.0", in: Self.store) != "mine")
    let refused = try await beta.client.refusals(in: Self.store, takingThrough: nil)
    #expect(refused.map { $0.writes.map(\.value) } == [["mine"]])
  }

  @Test func `an inviter that is killed leaves a joiner that can try again`() async throws {
    let (household, alpha) = try await household()
    let invitation = try await invite(alpha, in: household)
    try await FaultyProxy.with(target: invitation.port) { proxy in
      proxy.set(.init(bytesPerSecond: 500_000))
      let joining = try join("beta", invitation.token, through: proxy.port, in: household)
      try await eventually("half of the data") {
        proxy.counters.backwardBytes > 300_000 || !joining.isRunning
      }
      try await household.stop(alpha, SIGKILL)
      let end = try await joining.wait()
      #expect(proxy.counters.backwardBytes > 300_000, "\(end.talk)")
      #expect(end.status != 0)
      #expect(end.talk.contains("oin again"), "\(end.talk)")
    }
    _ = try await invitation.process.wait()
    let left = household.root.appending(path: "beta").path
    let files = (try? FileManager.default.contentsOfDirectory(atPath: left)) ?? []
    #expect(!files.contains { $0.hasPrefix("secrets") || $0.hasPrefix("kith.sqlite") }, "\(files)")
    try await household.start(alpha)
    #expect(try await devices(alpha) == ["alpha"])
    _ = try await household.join("beta")
    #expect(try await keys(of: "beta", in: household) == 1_000)
  }

  @Test func `the inviter serves a third device during a slow join`() async throws {
    let (household, alpha) = try await household()
    let gamma = try await household.join("gamma")
    try await household.start(gamma)
    try await household.awaitMeeting()
    let invitation = try await invite(alpha, in: household)
    try await FaultyProxy.with(target: invitation.port) { proxy in
      proxy.set(.init(bytesPerSecond: 40_000))
      let joining = try join("beta", invitation.token, through: proxy.port, in: household)
      try await eventually("the data to flow") { proxy.counters.backwardBytes > 100_000 }
      try await alpha.client.write([("key.1", "meanwhile")], in: Self.store)
      try await eventually("the third device to have it") {
        try await gamma.client.value(forKey: "key.1", in: Self.store) == "meanwhile"
      }
      try await gamma.client.write([("key.2", "from gamma")], in: Self.store)
      try await eventually("the inviter to have it") {
        try await alpha.client.value(forKey: "key.2", in: Self.store) == "from gamma"
      }
      #expect(joining.isRunning, "the join was to be slow")
      proxy.mend()
      let end = try await joining.wait()
      #expect(end.status == 0, "\(end.talk)")
      #expect(end.talk.contains("Getting what the account has"), "\(end.talk)")
    }
    _ = try await invitation.process.wait()
    #expect(try await keys(of: "beta", in: household) == 1_000)
    #expect(try await devices(alpha) == ["alpha", "beta", "gamma"])
  }
}
