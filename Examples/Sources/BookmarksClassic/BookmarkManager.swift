import Foundation
import UbiquitousKeyValueStore

/// Adds, removes and lists bookmarks, as written for Apple's class: an array of dictionaries under
/// one key, a copy of it in `UserDefaults`, and a notification when another device has changed it.
final class BookmarkManager {
  private static let key = "bookmarks"

  private let store = NSUbiquitousKeyValueStore.default
  private let defaults = UserDefaults.standard
  private var observer: NSObjectProtocol?

  /// The bookmarks, oldest first.
  private(set) var bookmarks: [[String: Any]]

  /// Called on the main queue with the reason and the keys of what changed elsewhere.
  var onChange: ((Int, [String]) -> Void)?

  init() {
    let saved = defaults.array(forKey: Self.key) as? [[String: Any]]
    bookmarks = store.array(forKey: Self.key) as? [[String: Any]] ?? saved ?? []
    observer = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
      queue: .main
    ) { [unowned self] notification in
      storeDidChange(notification)
    }
    store.synchronize()
  }

  deinit { NotificationCenter.default.removeObserver(observer as Any) }

  func add(url: String, title: String) {
    bookmarks.removeAll { $0["url"] as? String == url }
    bookmarks.append(["url": url, "title": title, "added": Date()])
    save()
  }

  func remove(url: String) -> Bool {
    guard let index = bookmarks.firstIndex(where: { $0["url"] as? String == url }) else {
      return false
    }
    bookmarks.remove(at: index)
    save()
    return true
  }

  private func save() {
    defaults.set(bookmarks, forKey: Self.key)
    defaults.synchronize()
    store.set(bookmarks, forKey: Self.key)
    store.synchronize()
  }

  private func storeDidChange(_ notification: Notification) {
    guard let info = notification.userInfo,
      let reason = info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
      let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String],
      keys.contains(Self.key)
    else { return }
    bookmarks = store.array(forKey: Self.key) as? [[String: Any]] ?? []
    defaults.set(bookmarks, forKey: Self.key)
    defaults.synchronize()
    onChange?(reason, keys)
  }
}
