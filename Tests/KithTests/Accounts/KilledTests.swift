import Foundation
import KithCrypto
import KithTestSupport
import Testing

@testable import Kith
@testable import KithStorage

/// What a process leaves that is killed while it makes or removes a device, and what the next one
/// makes of it.
@Suite(.timeLimit(.minutes(2)))
struct KilledTests {
  private let directory: TestDirectory
  private let configuration: Accounts.Configuration
  private var accounts: AccountsDirectory { AccountsDirectory(path: directory.path) }

  init() throws {
    directory = try TestDirectory()
    var configuration = Accounts.Configuration(directory: directory.path)
    configuration.hosts = []
    self.configuration = configuration
  }

  /// Makes an account, as a command does. The first is in the directory itself.
  private func create(_ name: String) async throws -> String {
    try await Accounts.add(configuration) { path throws(KithError) in
      try Node.createAccount(directory: path, name: name).summary
    }.directory
  }

  private var known: [String] {
    get async throws { try await Accounts.known(configuration).map(\.directory) }
  }

  @Test func `a removal that was not finished is finished`() async throws {
    for lost in [[], ["secrets"], ["secrets", "kith.sqlite"]] {
      let (first, second) = (try await create("first"), try await create("second"))
      #expect(first == directory.path && second.hasPrefix(first + "/accounts/"))
      _ = try await Accounts.signOut(configuration)
      for device in [first, second] {
        try accounts.update { registry in
          for index in registry.devices.indices { registry.devices[index].isLeaving = true }
        }
        for file in lost { try FileManager.default.removeItem(atPath: device + "/" + file) }
      }
      #expect(try await known.isEmpty, "\(lost)")
      #expect(!DeviceDirectory.holdsDevice(first), "\(lost)")
      #expect(!FileManager.default.fileExists(atPath: second), "\(lost)")
    }
  }

  @Test func `a new device does not wait for a list to be read`() async throws {
    let first = try await create("first")
    _ = try await Accounts.signOut(configuration)
    try accounts.update { $0.devices[0].isLeaving = true }
    try FileManager.default.removeItem(atPath: first + "/secrets")
    #expect(try await create("second") == first)
    #expect(try await known == [first])
  }

  /// Lets a join fail: before it has made a device, or as the device is to be noted.
  private func failToJoin(
    _ join:
      @escaping @Sendable (
        _ directory: String,
        _ made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void
      ) async throws(KithError) -> AccountSummary
  ) async throws {
    // With a list, the device in the directory itself must be noted too.
    try accounts.update { _ in }
    await #expect(throws: KithError.self) {
      try await accounts.join(
        accountHere: { () throws(KithError) in nil },
        arriving: { (_) async throws(KithError) in }, join)
    }
  }

  @Test func `a join that could not note its device leaves none in the directory itself`()
    async throws
  {
    let obstacle = directory.path + "/accounts.json.new/full"
    try await failToJoin { (path, made) async throws(KithError) in
      let summary = try Node.createAccount(directory: path, name: "first").summary
      try? FileManager.default.createDirectory(
        atPath: obstacle, withIntermediateDirectories: true)
      try await made(summary)
      return summary
    }
    #expect(!DeviceDirectory.holdsDevice(directory.path))
    #expect(FileManager.default.fileExists(atPath: directory.path + "/accounts.json"))
  }

  @Test func `a failed join leaves the device that another process made meanwhile`() async throws {
    try await failToJoin { (path, _) async throws(KithError) in
      // As another process does; the join finds that.
      _ = try Node.createAccount(directory: path, name: "other")
      throw KithError(.alreadyExists, "There is a device.")
    }
    #expect(DeviceDirectory.holdsDevice(directory.path))
  }

  @Test func `a removal that failed is not finished later`() async throws {
    let device = try await create("first")
    let known = try #require(try await Accounts.known(configuration).first)
    _ = try await Accounts.signOut(configuration)
    let open = try DeviceStorage.open(device, nil)
    let error = #expect(throws: KithError.self) {
      try accounts.remove(known.directory, waiting: .zero)
    }
    #expect(error?.code == .inUse)
    // Nor while it waits.
    try accounts.update { $0.devices[0].isLeaving = true }
    try accounts.finishRemovals()
    try accounts.update { $0.devices[0].isLeaving = nil }
    try open.close()
    #expect(try await self.known == [device])
    #expect(DeviceDirectory.holdsDevice(device))
    try await Accounts.leave(known, configuration)
    #expect(try await self.known.isEmpty)
  }

  @Test func `a device that was not noted is listed, and can be signed in`() async throws {
    _ = try await create("first")
    let path = accounts.directory(of: try accounts.newLocation())
    let made = try Node.createAccount(directory: path, name: "second").summary
    #expect(try await known == [directory.path, path])
    let stray = try #require(try await Accounts.known(configuration).last)
    #expect(stray.account == made.account && !stray.isSignedIn)
    try await Accounts.signIn(to: stray, configuration)
    #expect(
      try accounts.location()
        == .signedIn(directory: String(path.dropFirst(directory.path.count + 1)))
    )
    #expect(try await known == [directory.path, path])
    try await Accounts.leave(stray, configuration)
    #expect(try await known == [directory.path])
  }
}

/// A directory of which a part is missing, as after a restore that left files out, is no empty one:
/// what it showed then looked like the loss of everything, and writes went elsewhere.
@Suite struct PartialDirectoryTests {
  private let directory: TestDirectory
  private var path: String { directory.child("device") }

  init() throws { directory = try TestDirectory() }

  private func expect(
    _ code: KithError.Code, _ words: String, _ body: () async throws -> Void
  ) async {
    let error = await #expect(throws: KithError.self) { try await body() }
    #expect(error?.code == code && error?.description.contains(words) == true, "\(error as Any)")
  }

  @Test func `a database without its secrets is named by all ways in`() async throws {
    _ = try Node.createAccount(directory: path, name: "laptop")
    try FileManager.default.removeItem(atPath: path + "/secrets")
    let words = "put the file back"
    await expect(.damaged, words) { _ = try Accounts.deviceDirectory(in: path) }
    await expect(.damaged, words) { _ = try Accounts.isSignedOut(in: path) }
    await expect(.damaged, words) { _ = try AccountsTests.open(path) }
    await expect(.damaged, words) { _ = try await Nodes.open(path) }
    #expect(!FileManager.default.fileExists(atPath: path + "/local"))
  }

  @Test func `secrets without their database are named`() async throws {
    _ = try Node.createAccount(directory: path, name: "laptop")
    try FileManager.default.removeItem(atPath: path + "/kith.sqlite")
    await expect(.damaged, "the database is missing") { _ = try await Nodes.open(path) }
    #expect(!FileManager.default.fileExists(atPath: path + "/kith.sqlite"))
  }

  @Test func `local stores without their secrets are named`() async throws {
    try AccountsTests.open(path).close()
    try FileManager.default.removeItem(atPath: path + "/local/secrets")
    await expect(.damaged, "local/secrets") { _ = try AccountsTests.open(path) }
  }

  @Test func `a device that the list of accounts names, and that is gone, is named`() async throws {
    let accounts = try AccountsTests.open(path)
    try await accounts.createAccount(name: "one")
    try await accounts.createAccount(name: "two")
    try accounts.close()
    let place = try Accounts.deviceDirectory(in: path)
    #expect(place.hasPrefix(path + "/accounts/"))
    try FileManager.default.removeItem(atPath: place)
    await expect(.missing, "accounts.json") { _ = try Accounts.deviceDirectory(in: path) }
    // And one can leave that state.
    var configuration = Accounts.Configuration(directory: path)
    configuration.logger.logLevel = .error
    _ = try await Accounts.signOut(configuration)
    #expect(try Accounts.isSignedOut(in: path))
  }

  @Test func `a lost list of accounts is named, and signing in makes it anew`() async throws {
    let accounts = try AccountsTests.open(path)
    try await accounts.createAccount(name: "one")
    try await accounts.createAccount(name: "two")
    try accounts.close()
    for file in ["accounts.json", "secrets", "kith.sqlite"] {
      try FileManager.default.removeItem(atPath: path + "/" + file)
    }
    await expect(.damaged, "accounts.json") { _ = try Accounts.isSignedOut(in: path) }
    await expect(.damaged, "account sign-in") { _ = try AccountsTests.open(path) }
    var configuration = Accounts.Configuration(directory: path)
    configuration.logger.logLevel = .error
    let known = try await Accounts.known(configuration)
    #expect(known.count == 1)
    try await Accounts.signIn(to: try #require(known.first), configuration)
    #expect(try Accounts.deviceDirectory(in: path) == known.first?.directory)
  }

  /// The advice was to create an account on the NAS.
  @Test func `a carrier's folder is no device to recover from`() async throws {
    let key = try Node.createAccount(directory: path, name: "laptop").recoveryKey
    let folder = directory.child("nas")
    try FileManager.default.createDirectory(
      atPath: folder + "/kith1", withIntermediateDirectories: true)
    for (source, words) in [
      (folder, "folder of a carrier"), (folder + "/kith1", "folder of a carrier"),
      (directory.child("nothing"), "secrets and kith.sqlite"),
    ] {
      await expect(.missing, words) {
        _ = try Node.recoverAccount(
          directory: directory.child("new"), from: source, recoveryKey: key, name: "new")
      }
    }
    #expect(!FileManager.default.fileExists(atPath: directory.child("new") + "/secrets"))
  }
}
