import ArgumentParser
import ExampleDevice
import Foundation
import Kith

/// Bookmarks that are the same on all of a person's devices, with the modern API.
@main
struct Bookmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Bookmarks, the same on all devices.",
    subcommands: [Add.self, Remove.self, List.self, Watch.self])
}

extension Accounts {
  func bookmarks() throws -> BookmarkManager {
    BookmarkManager(store: try store("com.example.Bookmarks"))
  }
}

struct Add: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Adds a page.")
  @OptionGroup var device: DeviceOptions
  @Argument(transform: page) var url: URL
  @Argument var title: String
  @Option(help: "How many seconds to wait for the other devices.") var wait = 0

  func run() async throws {
    try await device.withRunningAccounts { [self] accounts in
      let bookmarks = try accounts.bookmarks()
      try await bookmarks.add(url, title: title)
      say("added \(title)")
      guard wait > 0 else { return }
      let report = try await bookmarks.store.waitUntilSynced(timeout: .seconds(wait))
      say("\(report.complete.count) other devices have it, \(report.incomplete.count) do not yet")
    }
  }
}

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Removes a page.")
  @OptionGroup var device: DeviceOptions
  @Argument(transform: page) var url: URL

  func run() async throws {
    let found = try await device.withAccounts { try await $0.bookmarks().remove(url) }
    guard found else { throw ValidationError("there is no bookmark of \(url)") }
    say("removed \(url)")
  }
}

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Lists the pages, oldest first.")
  @OptionGroup var device: DeviceOptions

  func run() async throws {
    try await device.withAccounts { show(try $0.bookmarks().all) }
  }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Stays connected to the other devices, and shows what they change.")
  @OptionGroup var device: DeviceOptions

  func run() async throws {
    try await device.withRunningAccounts { accounts in
      let bookmarks = try accounts.bookmarks()
      async let _ = accounts.sayWhenReady()
      await bookmarks.watch { change, all in
        say("\(change.reason): \(change.keys.map(\.text).joined(separator: ", "))")
        show(all)
      }
    }
  }
}

private func show(_ bookmarks: [Bookmark]) {
  for bookmark in bookmarks { say("  \(bookmark.title)  \(bookmark.url)") }
}

private func page(_ text: String) throws -> URL {
  guard let url = URL(string: text), url.scheme != nil else {
    throw ValidationError("\(text) is no address of a page")
  }
  return url
}
