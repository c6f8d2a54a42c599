import Foundation
import Kith
import KithTestSupport
import Testing

/// A device that was written in Python from Docs/Protocol.md alone, and a real node.
@Suite(.enabled(if: IndependentDevice.isPossible, "python3 or libsodium's library is missing"))
struct IndependentDeviceTests {
  /// `ProtocolExamplesTests` compares the page with this package.
  @Test(.timeLimit(.minutes(5)))
  func `the examples of the protocol page are what another implementation computes`() async throws {
    let household = try Household()
    let result = try await IndependentDevice.start(
      "../../Docs/Protocol-examples.py", "--check", in: household.root, input: Data()
    ).wait()
    #expect(result.status == 0, "\(result.output.prefix(4_000)) \(result.talk)")
  }

  @Test(.timeLimit(.minutes(5)))
  func `a device written along the protocol page joins, pulls and publishes`() async throws {
    let (household, node) = try await household()
    let device = try await join("device.py", node, in: household)
    try await eventually("the device to publish") {
      device.printedSoFar.contains("published") || !device.isRunning
    }
    try await household.set("after", "last", in: Self.store, on: node)
    let result = try await device.wait()
    #expect(result.status == 0, "\(result.talk)")
    let printed = result.output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(printed.first?.last == "220568656c6c6f", "the string hello")

    let shown = try #require(
      try await node.client.status().stores.first { $0.identifier.rawValue == Self.store })
    #expect(printed.last?.last.map(String.init) == shown.digest)
    let values = try await household.run(node, "export", "--json", "--store", Self.store).output
    for text in [#""from": "python""#, #""greeting": "hallo""#, #""after": "last""#] {
      #expect(values.contains(text), "\(values)")
    }
  }

  @Test(.timeLimit(.minutes(5)))
  func `a malformed message of the protocol page ends a session, and a wrong entry ends none`()
    async throws
  {
    let (household, node) = try await household()
    let result = try await join("malformed.py", node, in: household).wait()
    #expect(result.status == 0, "\(result.talk)")
    #expect(result.output.hasPrefix("malformed "), "\(result.output)")
    let shown = try #require(
      try await node.client.status().stores.first { $0.identifier.rawValue == Self.store })
    #expect(shown.quarantined == 1)
    let values = try await household.run(node, "export", "--json", "--store", Self.store).output
    #expect(values.contains(#""right": "value""#), "\(values)")
    #expect(!values.contains("wrong"), "\(values)")
  }

  // There from the beginning: the command line makes no store that nobody asked for.
  private static let store = "default"

  /// A node that runs, with a store of one key.
  private func household() async throws -> (Household, Household.Member) {
    let household = try Household()
    let node = try await household.create("node")
    try await household.start(node)
    try await household.set("greeting", "hello", in: Self.store, on: node)
    return (household, node)
  }

  /// Starts a program of Tests/Member, and invites it.
  private func join(
    _ program: String, _ node: Household.Member, in household: Household
  ) async throws -> KithProcess {
    let invitation = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory",
        node.directory.path,
      ], in: household.root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }
    let device = try IndependentDevice.start(
      program, "\(node.port)", Self.store, in: household.root,
      input: Data(invitation.printedSoFar.utf8))
    let invited = try await invitation.wait()
    guard invited.status == 0 else { throw NotInTime(invited.talk) }
    return device
  }
}

/// Programs of Tests/Member.
enum IndependentDevice {
  private static let folder = URL(filePath: #filePath).appending(path: "../../../Member")
    .standardized
  // Written for the Python of a system alone: its path, and nothing of this process's.
  private static let environment = [
    "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1",
  ]

  /// Whether this host has what they need.
  static let isPossible: Bool = {
    let scratch = FileManager.default.temporaryDirectory
      .appending(path: "\(Household.prefix)\(UUID().uuidString)")
    try? FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    let python = try? ChildProcess(
      ["/usr/bin/env", "python3", folder.appending(path: "kithwire.py").path],
      environment: environment, in: scratch, output: scratch.appending(path: "out"),
      talk: scratch.appending(path: "err"))
    python?.waitUntilExit()
    return python?.status == 0
  }()

  /// Starts one.
  static func start(
    _ program: String, _ arguments: String..., in directory: URL, input: Data
  ) throws -> KithProcess {
    try start(program, arguments, in: directory, input: input)
  }

  static func start(
    _ program: String, _ arguments: [String], in directory: URL, input: Data = Data()
  ) throws -> KithProcess {
    try KithProcess(
      command: ["/usr/bin/env", "python3", folder.appending(path: program).path] + arguments,
      in: directory, input: input, environment: environment)
  }
}

extension Household {
  fileprivate func set(
    _ key: String, _ value: String, in store: String, on member: Member
  ) async throws {
    let result = try await run(member, "set", key, value, "--store", store)
    guard result.status == 0 else { throw NotInTime(result.talk) }
  }
}
