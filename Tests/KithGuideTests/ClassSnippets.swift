import Foundation
import UbiquitousKeyValueStore  // Empty where Foundation has the class.

// The code of the guides to Apple's class; see `Snippets.swift`.

func useTheClass() throws {
  try UbiquityBootstrap.configure(storeIdentifier: "com.example.Editor")

  let store = NSUbiquitousKeyValueStore.default
  let observer = NotificationCenter.default.addObserver(
    forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: .main
  ) { notification in
    let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
    print("changed elsewhere:", keys)
  }
  store.set("dark", forKey: "theme")
  store.synchronize()

  _ = observer
}

func configureInCode() throws {
  try UbiquityBootstrap.configure(storeIdentifier: "com.example.Editor") {
    $0.port = 4120
    $0.peers = ["desktop.local:4114"]
  }
}

func configureOnLinux() throws {
  #if !canImport(Darwin)
    try UbiquityBootstrap.configure(storeIdentifier: "com.example.Editor")
  #endif
}

@MainActor final class ObservingSettings {
  private var observer: (any NSObjectProtocol)?

  init(_ store: NSUbiquitousKeyValueStore) {
    observer = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
      queue: .main
    ) { [weak self] notification in
      guard let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
        let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
      else { return }
      MainActor.assumeIsolated { self?.reload(keys, because: reason) }
    }
  }

  private func reload(_ keys: [String], because reason: Int) {}
}
