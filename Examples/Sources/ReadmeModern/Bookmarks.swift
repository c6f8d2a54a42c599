import Foundation
import Kith

struct Bookmark: Codable, StoreValue { var title, address: String }

extension StoreKey where Value == [Bookmark] {
  static var bookmarks: Self { .init("bookmarks", default: []) }  // the default is never written
}

@main
struct Bookmarks {
  static func main() async throws {
    let accounts = try Accounts(.init(directory: NSHomeDirectory() + "/.local/share/kith"))
    let store = try accounts.store("com.example.Bookmarks")  // of the account that is signed in
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await accounts.run() }  // or hand `accounts` to a ServiceGroup
      group.addTask {  // tells what the other devices write
        for await change in store.changes { print(change.reason, change.keys) }
      }
      let page = Bookmark(title: "Example", address: "https://example.com")
      try await store.commit { $0[.bookmarks].append(page) }  // a transaction, durable on return
      try await group.next()  // an error of run() ends the program
    }
  }
}
