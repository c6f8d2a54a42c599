import Foundation
import Kith

/// Adds, removes and lists bookmarks. The store is the only copy: it is in memory, works offline,
/// and is the same on every device.
struct BookmarkManager {
  let store: KeyValueStore

  /// The bookmarks, oldest first.
  var all: [Bookmark] { store[.bookmarks] }

  /// Adds a bookmark, or gives the one of the same page another title.
  func add(_ url: URL, title: String, on date: Date = .now) async throws {
    // A transaction sees the store as it is, so that what another device added is never lost.
    try await store.commit {
      $0[.bookmarks].removeAll { $0.url == url }
      $0[.bookmarks].append(Bookmark(url: url, title: title, added: date))
    }
  }

  /// Removes a bookmark, and says whether there was one.
  func remove(_ url: URL) async throws -> Bool {
    try await store.commit {
      let count = $0[.bookmarks].count
      $0[.bookmarks].removeAll { $0.url == url }
      return $0[.bookmarks].count < count
    }
  }

  /// The changes of other devices from now on, and the bookmarks shown then.
  func watch(_ show: (KeyValueStore.Change, [Bookmark]) -> Void) async {
    for await change in store.changes where change[.bookmarks] != nil {
      show(change, all)
    }
  }
}
