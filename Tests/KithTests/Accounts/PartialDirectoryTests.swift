import Foundation
import KithCrypto
import KithStorage
import KithTestSupport
import Testing

@testable import Kith

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
