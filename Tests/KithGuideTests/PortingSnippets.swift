import Foundation
import UbiquitousKeyValueStore
import UbiquitousKeyValueStorePorting

// The code of the guide to porting; see `Snippets.swift`.

/// Keeps its names apart from those of the other guides.
enum PortingSnippets {
  final class Settings {
    init() {
      NotificationCenter.default.addObserver(
        self, selector: Selector(Settings.storeDidChange(_:)),
        name: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
        object: NSUbiquitousKeyValueStore.default)
    }

    func storeDidChange(_ notification: Notification) { print(notification.name) }

    func selector() -> Selector {
      #if canImport(ObjectiveC)
        let changed = #selector(storeDidChange(_:))
      #else
        let changed = Selector(Settings.storeDidChange(_:))
      #endif

      return changed
    }

    deinit { NotificationCenter.default.removeObserver(self) }
  }
}
