import Foundation
import Kith
import KithTestSupport
import Testing

/// The files that beginning an account leaves, and those that it does not leave.
@Suite(.timeLimit(.minutes(2)))
struct BeginningTests {
  private func open(_ directory: TestDirectory) throws -> Accounts {
    var configuration = Accounts.Configuration(directory: directory.path)
    configuration.hosts = []
    return try Accounts(configuration)
  }

  /// The device in the directory itself is signed in without any list: a list that cannot be
  /// written must not cost its recovery key.
  @Test func `the first account needs no list`() async throws {
    let directory = try TestDirectory()
    let accounts = try open(directory)
    let list = directory.path + "/accounts.json"
    try FileManager.default.createDirectory(
      atPath: list + ".new/full", withIntermediateDirectories: true)
    let made = try await accounts.createAccount(name: "first")
    #expect(!made.recoveryKey.isEmpty)
    #expect(accounts.signedIn == made.summary.account)
    #expect(!FileManager.default.fileExists(atPath: list))
    #expect(try accounts.known.map(\.isSignedIn) == [true])
    try accounts.close()
  }

  @Test func `a further account that cannot be noted leaves nothing`() async throws {
    let (directory, accounts, obstacle) = try await signedOutAndUnableToNote()
    await #expect(throws: KithError.self) { try await accounts.createAccount(name: "second") }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path + "/accounts").isEmpty)
    #expect(accounts.signedIn == nil)
    try FileManager.default.removeItem(atPath: obstacle)
    let made = try await accounts.createAccount(name: "second")
    #expect(accounts.signedIn == made.summary.account)
    try accounts.close()
  }

  /// A program that has an account, is signed out, and cannot write the list of accounts while the
  /// obstacle lies there.
  private func signedOutAndUnableToNote() async throws -> (
    directory: TestDirectory, accounts: Accounts, obstacle: String
  ) {
    let directory = try TestDirectory()
    let accounts = try open(directory)
    try await accounts.createAccount(name: "first")
    try await accounts.signOut()
    let obstacle = directory.path + "/accounts.json.new"
    try FileManager.default.createDirectory(
      atPath: obstacle + "/full", withIntermediateDirectories: true)
    return (directory, accounts, obstacle)
  }

  /// A backup may have left both out. The directory looked empty, and a write made new local stores.
  @Test func `a device without its secrets, of which no list is left, is named`() throws {
    let directory = try TestDirectory()
    let device = directory.path + "/accounts/00ff"
    try FileManager.default.createDirectory(atPath: device, withIntermediateDirectories: true)
    try Data([1]).write(to: URL(filePath: device + "/kith.sqlite"))
    let error = #expect(throws: KithError.self) { try open(directory) }
    #expect(error?.code == .damaged)
    #expect(error?.path?.hasPrefix(device) == true, "\(error as Any)")
    #expect(!FileManager.default.fileExists(atPath: directory.path + "/local"))
  }

  /// Nothing takes a device out again that an account has taken in.
  @Test func `a device that cannot be noted does not ask to join an account`() async throws {
    let (directory, accounts, _) = try await signedOutAndUnableToNote()
    // It would fail because of the code.
    let error = await #expect(throws: KithError.self) {
      try await accounts.signIn(code: "no code", name: "second") { _, _ in true }
    }
    #expect(error?.path?.hasPrefix(directory.path + "/accounts.json") == true, "\(error as Any)")
    try accounts.close()
  }
}
