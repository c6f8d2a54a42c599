import Foundation
import KithCommands
import KithTestSupport
import KithValues
import Testing

@testable import Kith
@testable import KithWeb

@Suite struct PageDocumentsTests {
  @Test(
    "a value is told exactly, as the text of its JSON",
    arguments: [
      (PropertyListValue.bool(true), "bool", "true"), (.integer(1), "integer", "1"),
      (.integer(.max), "integer", "9223372036854775807"), (.double(1), "double", "1.0"),
      (.string("a\"\u{202e}<b>"), "string", "\"a\\\"\\u202e<b>\""),
      (.array([.integer(1), .double(1)]), "array", "[1,1.0]"),
      (.data(Data([0, 1])), "data", "{\"$data\":\"AAE=\"}"),
    ])
  func exact(value: PropertyListValue, type: String, json: String) throws {
    let entry = try members(PageDocuments.entry("key", value))
    #expect(entry["type"] as? String == type)
    #expect(entry["json"] as? String == json)
    #expect(try ValueJSON.value(json) == value)
  }

  @Test("a large value is told only on demand, its size always")
  func large() throws {
    let value = PropertyListValue.string(String(repeating: "x", count: PageDocuments.shownBytes))
    let listed = try members(PageDocuments.entry("key", value))
    #expect(listed["json"] == nil)
    #expect(try #require(listed["bytes"] as? Int) > PageDocuments.shownBytes)
    let whole = try members(PageDocuments.entry("key", value, isWhole: true))
    #expect((whole["json"] as? String)?.count == PageDocuments.shownBytes + 2)
  }

  @Test("a change names each key once, with its new value or as removed")
  func change() throws {
    let change = KeyValueStore.Change(
      reason: .externalChange,
      items: [
        .init(key: "gone", old: .integer(1), new: nil),
        .init(key: "new", old: nil, new: .integer(2)),
      ])
    let document = try members(PageDocuments.change(change, of: "s"))
    let items = try #require(document["items"] as? [[String: Any]])
    #expect(items[0]["removed"] as? Bool == true)
    #expect(items[1]["json"] as? String == "2")
    #expect(document["reason"] as? String == "externalChange")
  }

  @Test func `a device that joined says if stores came only in part`() throws {
    func partial(_ stores: Int) throws -> String? {
      let progress = JoinProgress(
        (stores: 3, pulledStores: 3, partialStores: stores, changeSets: 9))
      let done = Pairing.State.done(.joiner, nil, partial: progress.partialNotice)
      return try members(done.document)["partial"] as? String
    }
    #expect(try partial(0) == nil)
    #expect(try partial(2)?.hasPrefix("2 stores came only in part: ") == true)
  }

  private func members(_ document: Document) throws -> [String: Any] {
    let data = Data(document.text(indented: false).utf8)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }
}

@Suite struct PageFileTests {
  private var folder: URL {
    URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/KithWeb/Page").standardized
  }

  @Test("each file of the folder is served as it is, by its type")
  func files() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(Set(names.map { "/" + $0 }) == Set(PageFile.files.keys))
    for name in names {
      let file = try #require(PageFile(path: "/" + name))
      #expect(Data(file.bytes) == (try Data(contentsOf: folder.appending(path: name))))
    }
    #expect(PageFile(path: "/")?.type == "text/html; charset=utf-8")
    #expect(PageFile(path: "/icon.svg")?.type == "image/svg+xml; charset=utf-8")
    #expect(PageFile(path: "/app.js")?.type == "text/javascript; charset=utf-8")
    #expect(PageFile(path: "/page.css")?.type == "text/css; charset=utf-8")
    #expect(PageFile(path: "/../Package.swift") == nil)
    #expect(PageFile(path: "/js") == nil)
  }

  @Test("the page fetches nothing from elsewhere, and makes no markup of texts")
  func sources() throws {
    for (path, bytes) in PageFile.files {
      let text = String(decoding: bytes, as: UTF8.self)
      for forbidden in [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
        "DOMParser", "createContextualFragment", "srcdoc", "https://", "@import", "style=\"",
        "javascript:",
      ] {
        #expect(!text.contains(forbidden), "\(path) has \(forbidden)")
      }
      // `setChildren` leaves out what `condition && child` gives.
      if path != "/dom.js" { #expect(!text.contains(".replaceChildren("), "\(path)") }
      #expect(!text.contains(/<script(?![^>]*src=)/), "\(path) has a script inside")
      #expect(!text.contains(/\son[a-z]+="/), "\(path) has a handler inside")
      for address in text.matches(of: /http:\/\/[^\s"']+/) {
        #expect(address.output.hasPrefix("http://www.w3.org/"), "\(path) names \(address.output)")
      }
    }
  }

  @Test("each module that a module imports is there")
  func imports() {
    for (path, bytes) in PageFile.files where path.hasSuffix(".js") {
      let text = String(decoding: bytes, as: UTF8.self)
      for module in text.matches(of: /(?:from|import)\s+["']\.(\/[^"']+)["']/) {
        #expect(PageFile.files[String(module.output.1)] != nil, "\(path): \(module.output.1)")
      }
    }
  }
}

@Suite(.timeLimit(.minutes(2))) struct PairingStateTests {
  /// At the end of `kith web` the pairing is cancelled while the pages that follow it go.
  @Test func `watchers that end while the state changes hold up nobody`() async throws {
    let directory = try TestDirectory()
    let accounts = try Accounts(Accounts.Configuration(directory: directory.child("a")))
    let pairing = Pairing(accounts)
    for _ in 0..<100 {
      let watching = AsyncStream<Void>.makeStream()
      let watchers = Task {
        await withDiscardingTaskGroup { group in
          for _ in 0..<40 {
            group.addTask {
              for await () in pairing.changed { watching.continuation.yield() }
            }
          }
        }
      }
      var heard = watching.stream.makeAsyncIterator()
      for _ in 0..<40 { await heard.next() }
      async let changes: Void = { for _ in 0..<40 { pairing.cancel() } }()
      watchers.cancel()
      await watchers.value
      await changes
    }
    try accounts.close()
  }
}
