import Foundation
import Kith
import Testing

/// A device that was written in Python from Docs/Protocol.md alone, and a real node.
@Suite(.enabled(if: IndependentDevice.isPossible, "python3 or libsodium's library is missing"))
struct IndependentDeviceTests {
  @Test(.timeLimit(.minutes(5)))
  func `a device written along the protocol page joins, pulls and publishes`() async throws {
    let household = try Household()
    let node = try await household.create("node")
    try await household.start(node)
    let store = "com.example.App"
    try await household.set("greeting", "hello", in: store, on: node)
    let invitation = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory",
        node.directory.path,
      ], in: household.root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }

    let device = try IndependentDevice.start(
      "device.py", "\(node.port)", store, in: household.root,
      input: Data(invitation.printedSoFar.utf8))
    try await eventually("the device to publish") {
      device.printedSoFar.contains("published") || !device.isRunning
    }
    try await household.set("after", "last", in: store, on: node)
    let result = try await device.wait()
    #expect(result.status == 0, "\(result.talk)")
    let printed = result.output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(printed.first?.last == "220568656c6c6f", "the string hello")
    #expect(try await invitation.wait().status == 0)

    let report = try await node.client.report()
    let shown = try #require(report.stores.first { $0.identifier == store })
    #expect(printed.last?.last.map(String.init) == shown.digest)
    let values = try await household.run(node, "export", "--json", "--store", store).output
    for text in [#""from": "python""#, #""greeting": "hallo""#, #""after": "last""#] {
      #expect(values.contains(text), "\(values)")
    }
  }
}

/// Programs of Tests/Member.
enum IndependentDevice {
  private static let folder = URL(filePath: #filePath).appending(path: "../../../Member")
    .standardized

  /// Whether this host has what they need.
  static let isPossible: Bool = {
    let scratch = FileManager.default.temporaryDirectory
      .appending(path: "\(Household.prefix)\(UUID().uuidString)")
    try? FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    let python = try? ChildProcess(
      ["/usr/bin/env", "python3", folder.appending(path: "kithwire.py").path],
      environment: ["PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"],
      in: scratch, output: scratch.appending(path: "out"), talk: scratch.appending(path: "err"))
    python?.waitUntilExit()
    return python?.status == 0
  }()

  /// Starts one.
  static func start(
    _ program: String, _ arguments: String..., in directory: URL, input: Data
  ) throws -> KithProcess {
    try KithProcess(
      command: ["/usr/bin/env", "python3", folder.appending(path: program).path] + arguments,
      in: directory, input: input,
      environment: ["PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"])
  }
}

extension Household {
  fileprivate func set(
    _ key: String, _ value: String, in store: String, on member: Member
  ) async throws {
    let result = try await run(member, "set", key, value, "--store", store)
    guard result.status == 0 else { throw NotInTime(description: result.talk) }
  }
}
