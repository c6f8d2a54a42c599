import Foundation
import Kith
import KithTestSupport
import KithUserDefaults
import Testing

/// The behaviour of the mirror of defaults when somebody signs in or out.
@Suite(.timeLimit(.minutes(5)))
struct MirrorAccountTests {
  @Test func noSettingIsLostWithTheAccountThatItCameFrom() async throws {
    let directory = try TestDirectory()
    let suite = "kith-test-\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: suite))
    defer {
      defaults.removePersistentDomain(forName: suite)
      let environment = ProcessInfo.processInfo.environment
      let folder = environment["XDG_CONFIG_HOME"] ?? "\(environment["HOME"] ?? "")/.config"
      try? FileManager.default.removeItem(atPath: "\(folder)/\(suite).plist")
    }
    var configuration = Accounts.Configuration(directory: directory.child("a"))
    configuration.hosts = []
    let accounts = try Accounts(configuration)
    let store = try accounts.store("com.example.test")
    let mirror = UserDefaultsMirror(store, keys: ["theme", "size"], suite: suite)

    // Signed out; then an account, whose first data it is.
    try mirror.set("dark", forKey: "theme")
    let first = try await accounts.createAccount(name: "laptop").summary
    let quiet = mirror.sync()
    #expect(quiet.stored.isEmpty && quiet.taken.isEmpty)
    // Signed out again, the store is empty, and the setting is not.
    try await accounts.signOut()
    #expect(store.keys.isEmpty)
    #expect(mirror.sync().stored == ["theme"])
    #expect(defaults.string(forKey: "theme") == "dark")
    // Changed meanwhile; the account's value wins if it has one.
    try mirror.set("light", forKey: "theme")
    try mirror.set(12, forKey: "size")
    try await accounts.signIn(to: first.account)
    #expect(mirror.sync().taken == ["theme"])
    #expect(defaults.string(forKey: "theme") == "dark")
    #expect(store.value(forKey: "size") == 12)
    // Within one account a removal is one.
    try store.removeValue(forKey: "theme")
    #expect(mirror.sync().taken == ["theme"])
    #expect(defaults.object(forKey: "theme") == nil)
    try accounts.close()
  }
}
