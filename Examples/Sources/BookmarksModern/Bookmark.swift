import Foundation
import Kith

/// A page to come back to. `StoreValue` makes it `Codable`, and a store's value.
struct Bookmark: StoreValue, Equatable {
  var url: URL
  var title: String
  var added: Date
}

extension StoreKey where Value == [Bookmark] {
  /// All of them, under one key: they change together, or not at all.
  static var bookmarks: Self { .init("bookmarks", default: []) }
}
