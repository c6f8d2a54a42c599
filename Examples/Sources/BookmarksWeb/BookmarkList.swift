import Foundation
import Kith

/// The device that changed the bookmarks last, and when.
struct LastChange: StoreValue, Equatable {
  var device: String
  var date: Date
}

extension StoreKey where Value == LastChange? {
  /// Written in one transaction with the bookmarks, so that a device shows both or neither.
  ///
  /// `store.changes` reports that another device wrote, but not which one. The history has the
  /// device, but the time when the value came here, and no entry for the first value.
  static var lastChange: Self { .init("bookmarks.changed") }
}

/// The page to change was removed, perhaps on another device.
struct BookmarkIsGone: Error {
  var url: URL
}

/// Changes the bookmarks, and reads the content of the page.
actor BookmarkList {
  struct Content: Encodable, Sendable {
    var device: String
    var bookmarks: [Bookmark]
    var lastChange: LastChange?
    /// The titles that a change from outside removed.
    var lost: [String] = []
  }

  private let accounts: Accounts
  private let store: KeyValueStore
  /// Ends after the newest write.
  private var writing: Task<Void, Never>?

  init(_ accounts: Accounts) throws {
    self.accounts = accounts
    store = try accounts.store("com.example.Bookmarks")
  }

  // MARK: Writing

  /// Adds a bookmark at the end, or replaces the one of the same page.
  func add(_ url: URL, title: String) async throws {
    try await change {
      $0.removeAll { $0.url == url }
      $0.append(Bookmark(url: url, title: title, added: .now))
    }
  }

  /// Removes a bookmark.
  func remove(_ url: URL) async throws {
    try await change { $0.remove(at: try $0.position(of: url)) }
  }

  /// Moves a bookmark before another one; nil: to the end.
  func move(_ url: URL, before next: URL?) async throws {
    guard url != next else { return }
    try await change {
      let bookmark = $0.remove(at: try $0.position(of: url))
      $0.insert(bookmark, at: try next.map($0.position) ?? $0.endIndex)
    }
  }

  /// Changes the array that the store shows now, not the one that a page showed some time ago: a
  /// page names a bookmark by its URL, because its index may be another one by now.
  private func change(
    _ body: @escaping @Sendable (inout [Bookmark]) throws -> Void
  ) async throws {
    let device = try await devices().own
    // One request after the other. A transaction reads the store when it begins; if two began with
    // the same array, the later one would drop the change of the earlier one.
    let task = Task { [writing, store] in
      await writing?.value
      try await store.commit {
        try body(&$0[.bookmarks])
        $0[.lastChange] = LastChange(device: device, date: .now)
      }
    }
    writing = Task { _ = await task.result }
    try await task.value
  }

  // MARK: Reading

  /// The changes from now on, also those that this program makes. Each reader has its own sequence;
  /// a slow one gets several changes as one.
  nonisolated var changes: StoreChanges { store.changes(includingOwnWrites: true) }

  /// The bookmarks as they are now, after a change or without one.
  func content(after change: KeyValueStore.Change? = nil) async throws -> Content {
    let (own, names) = try await devices()
    var content = Content(
      device: own, bookmarks: store[.bookmarks], lastChange: try lastChange(names))
    // If two devices change the list before they meet, the later list wins on both, and a bookmark
    // that only the other list has is lost. So the page names those that a change from outside removed.
    if let change, change.reason != .ownWrite, let (old, new) = change[.bookmarks] {
      let kept = Set(new.map(\.url))
      content.lost = old.filter { !kept.contains($0.url) }.map(\.title)
    }
    return content
  }

  /// Other programs, such as `bookmarks-modern`, write the bookmarks without `lastChange`. Then the
  /// history of the bookmarks is newer than that of `lastChange`, and has the device.
  private func lastChange(_ names: [DeviceID: String]) throws -> LastChange? {
    let past = try store.history(of: StoreKey.bookmarks.name, limit: 1).first
    let stamped = try store.history(of: StoreKey.lastChange.name, limit: 1).first
    guard let past, past.ended > stamped?.ended ?? .distantPast,
      let device = past.endedBy.flatMap({ names[$0] })
    else { return store[.lastChange] }
    return LastChange(device: device, date: past.ended)
  }

  /// The name of this device, and of all by id.
  private func devices() async throws -> (own: String, names: [DeviceID: String]) {
    let devices = try await accounts.status().devices
    // Without an account, the bookmarks are those of this host alone.
    let own = devices.first { $0.isThisDevice }?.name ?? ProcessInfo.processInfo.hostName
    return (own, Dictionary(uniqueKeysWithValues: devices.map { ($0.id, $0.name) }))
  }
}

extension [Bookmark] {
  fileprivate func position(of url: URL) throws -> Int {
    guard let index = firstIndex(where: { $0.url == url }) else { throw BookmarkIsGone(url: url) }
    return index
  }
}
