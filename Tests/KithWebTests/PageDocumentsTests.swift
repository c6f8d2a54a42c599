import Foundation
import KithCommands
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

  private func members(_ document: Document) throws -> [String: Any] {
    let data = Data(document.text(indented: false).utf8)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }
}
