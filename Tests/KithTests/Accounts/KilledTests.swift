import Foundation
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

  @Test func `a removal that failed is not finished later`() async throws {
    let device = try await create("first")
    let known = try #require(try await Accounts.known(configuration).first)
    _ = try await Accounts.signOut(configuration)
    let open = try Storage.open(device, nil)
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
