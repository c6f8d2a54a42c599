import Foundation
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("kith carrier", .timeLimit(.minutes(5)))
struct CarrierCommandTests {
  /// Objects of the account in a folder that is a carrier.
  private func objects(in folder: URL) -> [URL] {
    let places = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    return (places?.allObjects as? [URL] ?? []).filter { $0.lastPathComponent.count == 32 }
      .filter { !$0.hasDirectoryPath }
  }

  @Test func `two devices that are never on together exchange through a folder`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    let folder = household.root.appending(path: "folder", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    func run(_ member: Household.Member, _ words: String...) async throws -> KithProcess.Result {
      try await KithProcess.run(
        words + ["--directory", member.directory.path], in: household.root)
    }

    try await household.start(alpha, peers: [])
    _ = try await run(alpha, "set", "theme", "dark")
    let added = try await run(alpha, "carrier", "add", "folder", folder.path)
    #expect(added.status == 0 && added.output.isEmpty, "\(added)")
    #expect(added.talk.contains("It holds everything of this device now: "), "\(added)")
    let checked = try await run(alpha, "carrier", "check", "--json")
    #expect(checked.status == 0 && checked.output.contains(#""works": true"#), "\(checked)")
    let synced = try await run(alpha, "sync", "--json")
    #expect(synced.status == 0 && synced.output.contains(#""location": "\#(folder.path)""#))
    #expect(try await run(alpha, "status").output.contains("folder \(folder.path)"))
    try await household.stop(alpha)
    // The trial's object is gone again. The last turn may have put what this device says that it has.
    let first = objects(in: folder)
    #expect((1...2).contains(first.count))

    // Without a node: it is used once one runs.
    let other = try await run(beta, "carrier", "add", "folder", folder.path)
    #expect(other.status == 0 && other.talk.contains("No node runs here"), "\(other)")
    try await household.start(beta, peers: [])
    try await eventually("alpha's write") { try await run(beta, "get", "theme").output == "dark\n" }
    _ = try await run(beta, "rm", "theme")
    #expect(try await run(beta, "sync").status == 0)
    try await household.stop(beta)

    try await household.start(alpha, peers: [])
    try await eventually("the removal") { try await run(alpha, "get", "theme").status == 2 }
    let devices = try await run(alpha, "devices").output
    #expect(devices.contains("everything"), "\(devices)")

    let removed = try await run(alpha, "carrier", "remove", "--yes")
    #expect(removed.status == 0, "\(removed)")
    try await eventually("the carrier to be gone") {
      try await run(alpha, "carrier", "list", "--json").output.contains(#""carriers": []"#)
    }
    #expect(objects(in: folder).count >= first.count, "what lies there stays")
    try await household.stop(alpha)
  }

  /// The command waited two minutes for it.
  @Test func `a program whose node uses no carriers is said at once`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let folder = household.root.appending(path: "folder", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var configuration = Node.Configuration(directory: alpha.directory.path)
    configuration.hosts = []
    configuration.discoversPeers = false
    configuration.logger.logLevel = .critical
    let node = try await Node.open(configuration)
    let serving = Task { try await node.run() }
    try await eventually("the node to answer") { (try? await alpha.client.status()) != nil }
    let start = ContinuousClock.now
    let added = try await household.run(alpha, "carrier", "add", "folder", folder.path)
    #expect(ContinuousClock.now - start < .seconds(60))
    #expect(added.status == CommandStatus.unreachable.rawValue, "\(added)")
    #expect(added.talk.contains("uses no carriers"), "\(added)")
    serving.cancel()
    try await serving.value
    try node.close()
  }

  /// The old credentials were used on here.
  @Test func `a carrier added for the account replaces this device's own`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let node = try await Node.open(.init(directory: alpha.directory.path))
    var settings = CarrierSettings(
      kind: "webdav", location: "https://cloud.example/", credentials: "me\nold")
    #expect(try await CarrierAddCommand.keep(settings, on: node) == false)
    settings.credentials = "me\nnew"
    settings.isShared = true
    #expect(try await CarrierAddCommand.keep(settings, on: node) == true)
    #expect(try await node.carriers() == [settings])
    #expect(try await CarrierAddCommand.keep(settings, on: node) == false)
    try node.close()
  }

  @Test func `an unusable carrier is refused with advice`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    func run(_ words: String..., input: String = "") async throws -> KithProcess.Result {
      try await KithProcess.run(
        words + ["--directory", alpha.directory.path], in: household.root,
        input: Data(input.utf8))
    }
    try Data().write(to: household.root.appending(path: "file"))
    let manager = FileManager.default
    for (link, place) in [("link", alpha.directory.path), ("dangling", "/nowhere")] {
      try manager.createSymbolicLink(
        atPath: household.root.appending(path: link).path, withDestinationPath: place)
    }
    let cases: [(words: [String], status: CommandStatus)] = [
      (["add", "webdav", "http//nothing", "--no-credentials"], .usage),
      (["add", "webdav", "https://user:secret@example.com/", "--no-credentials"], .usage),
      (["add", "folder", "/proc/kith"], .unreachable),
      (["add", "folder", ""], .usage), (["add", "webdav", ""], .usage),
      (["remove", "", "--yes"], .usage), (["check", ""], .usage),
      (["add", "folder", alpha.directory.path], .refused),
      (["add", "folder", alpha.directory.path + "/car", "--yes"], .refused),
      (["add", "folder", household.root.path + "/link/car", "--yes"], .refused),
      (["add", "folder", "car"], .refused), (["add", "folder", "https:"], .refused),
      (["add", "folder", "~/car"], .refused), (["add", "folder", "https://host/dav"], .refused),
      (["add", "folder", "/car", "--only-here", "--authority-file", "/x"], .usage),
      (["add", "folder", household.root.path + "/file"], .unreachable),
      (["add", "folder", household.root.path + "/file/car"], .unreachable),
      (["add", "folder", household.root.path + "/dangling"], .unreachable),
      (["check"], .notFound), (["remove", "--yes"], .notFound),
      (["password", "nowhere", "--no-credentials"], .notFound),
    ]
    for (words, status) in cases {
      let result = try await KithProcess.run(
        ["carrier"] + words + ["--directory", alpha.directory.path], in: household.root,
        input: Data())
      #expect(result.status == status.rawValue, "\(words): \(result)")
      #expect(!result.talk.isEmpty && !result.talk.contains("secret"), "\(words): \(result)")
      let isFile = words.contains { $0.contains("/file") || $0.hasSuffix("/dangling") }
      #expect(result.talk.contains("is a file") == isFile, "\(words): \(result)")
    }
    // Without a terminal nobody can be asked.
    let asked = try await run("carrier", "add", "webdav", "https://192.0.2.1/dav")
    #expect(asked.status == CommandStatus.refused.rawValue, "\(asked)")
    #expect(asked.talk.contains("--credentials-file"), "\(asked)")
    let reserved = try await run("ls", "--store", CarrierSettings.store)
    #expect(reserved.status == CommandStatus.usage.rawValue, "\(reserved)")
    #expect(try await run("stores", "--all").output.contains("kith.") == false)
  }
}
