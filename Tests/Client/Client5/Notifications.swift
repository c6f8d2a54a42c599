import Foundation
import Kith
import KithTesting
import UbiquitousKeyValueStore

/// The notifications that a program gets of two devices in memory. Also checks that it never waits
/// for itself.
@MainActor struct Notifications {
  let checks: Checks

  private static let name = "com.example.Client"

  func runAll() throws {
    try elsewhere()
    try mainThreadIsBusy()
  }

  /// A change from elsewhere, read in the ways that programs read it.
  func elsewhere() throws {
    let account = try TestAccount()
    let there = try account[0].store(Self.name)
    let store = try UbiquityBootstrap.makeStore(on: account[1].store(Self.name))
    let settings = CloudSettings(store: store)
    let reasons = Locked<Int>()
    let keys = Locked<[NSString]>()
    let observer = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
    ) { notification in
      guard let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
        let changed = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [NSString]
      else { return }
      switch reason {
      case NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange,
        NSUbiquitousKeyValueStoreQuotaViolationChange, NSUbiquitousKeyValueStoreAccountChange:
        reasons.append(reason)
      default: break
      }
      keys.append(changed)
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    try there.set("dark", forKey: "theme")
    checks.wait { settings.theme == "dark" && !keys.all.isEmpty }
    checks.expect(reasons.all == [NSUbiquitousKeyValueStoreServerChange])
    checks.expect(keys.all == [["theme"]])
    settings.theme = "light"
    checks.expect(there.value(forKey: "theme") == "light")
    settings.stop()
  }

  /// An observer on the main queue keeps the posting thread waiting until the main thread has time.
  /// Here the main thread has none, because it synchronises. If synchronising waited for the
  /// posting, nothing would ever go on, and the process's alarm would end it.
  func mainThreadIsBusy() throws {
    let account = try TestAccount()
    let there = try account[0].store(Self.name)
    let store = try UbiquityBootstrap.makeStore(on: account[1].store(Self.name))
    store.synchronize()
    let heard = Locked<String>()
    let observer = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
      queue: .main
    ) { _ in heard.append("changed") }
    defer { NotificationCenter.default.removeObserver(observer) }
    try there.set("dark", forKey: "theme")
    // Until the posting waits for this thread.
    while OperationQueue.main.operationCount == 0 { store.synchronize() }
    for number in 0..<500 {
      store.set(Int64(number), forKey: "number")
      try there.set(.integer(Int64(number)), forKey: "there")
      guard store.synchronize() else { fatalError("synchronize() is false") }
      checks.expect(store.longLong(forKey: "there") == Int64(number))
    }
    checks.expect(heard.all.isEmpty)
    checks.expect(there.value(forKey: "number") == 499)
    checks.wait { !heard.all.isEmpty }
  }
}
