import Foundation
import UbiquitousKeyValueStore

// Or by environment, or by kith.json beside the program.
try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")
let store = NSUbiquitousKeyValueStore.default
let observer = NotificationCenter.default.addObserver(
  forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: .main
) { print($0.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []) }
store.set(["https://example.com"], forKey: "bookmarks")
store.synchronize()  // to the disk; never waits for the network
RunLoop.main.run()
