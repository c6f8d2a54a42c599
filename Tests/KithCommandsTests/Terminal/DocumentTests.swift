import Kith
import Testing

@testable import KithCommands

@Suite("JSON documents")
struct DocumentTests {
  @Test func `members are sorted, versioned, and never null`() {
    let document = Document.versioned([
      "z": .strings(["a", "b"]), "none": nil, "é": .bool(true), "a": .int(7), "empty": .list([]),
      "value": .value(["k": [1, 2.5]]),
    ])
    #expect(
      document.text(indented: false)
        == #"{"a":7,"empty":[],"value":{"k":[1,2.5]},"version":1,"z":["a","b"],"é":true}"#)
    #expect(
      Document.object(["a": .list([.int(1)])]).text() == """
        {
          "a": [
            1
          ]
        }
        """)
  }

  @Test func `keys that Swift calls equal stay apart`() throws {
    let document = Document.members([("e\u{301}", .int(2)), ("é", .int(1))])
    #expect(Array(document.text(indented: false).utf8) == Array("{\"e\u{301}\":2,\"é\":1}".utf8))
  }
}
