import Foundation
import Kith
import KithTesting

@testable import KithUserDefaults

/// Defaults of a suite that no other test has, removed with their file at the end, and a store in
/// memory.
final class MirrorFixture {
  static let keys = ["theme", "fontSize", "flag"]

  let suite = "kith-test-\(UUID().uuidString)"
  let defaults: UserDefaults
  let account: TestAccount

  init(devices: Int = 2) throws {
    defaults = UserDefaults(suiteName: suite) ?? UserDefaults()
    account = try TestAccount(devices: devices)
  }

  deinit {
    UserDefaults.standard.removePersistentDomain(forName: suite)
    let environment = ProcessInfo.processInfo.environment
    let folder = environment["XDG_CONFIG_HOME"] ?? "\(environment["HOME"] ?? "")/.config"
    try? FileManager.default.removeItem(atPath: "\(folder)/\(suite).plist")
  }

  func store(_ device: Int = 0) throws -> KeyValueStore {
    try account[device].store("com.example.App")
  }

  /// A mirror, as the program makes one at each start.
  func mirror(
    _ store: KeyValueStore, keys: [String] = keys, interval: Duration? = nil,
    onSync: (@Sendable (UserDefaultsMirror.Report) -> Void)? = nil
  ) -> UserDefaultsMirror {
    UserDefaultsMirror(store, keys: keys, suite: suite, interval: interval, onSync: onSync)
  }

  /// The value of a key in the defaults, as a value of a store.
  func shown(_ key: String) throws -> PropertyListValue? {
    try defaults.object(forKey: key).map(DefaultsValue.value)
  }
}
