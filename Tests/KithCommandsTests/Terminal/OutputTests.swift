import Foundation
import Glibc
import Kith
import Logging
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

@Suite("The log of kith run")
struct ServiceLogTests {
  private static let time = Date(timeIntervalSince1970: 1_795_465_440)

  @Test(arguments: [
    (Logger.Level.debug, "<7>"), (.info, "<6>"), (.notice, "<5>"), (.warning, "<4>"),
    (.error, "<3>"), (.critical, "<2>"),
  ])
  func `the journal gets priorities, and others times`(level: Logger.Level, priority: String) {
    #expect(ServiceLog.line(level, "said", [:], at: nil) == "\(priority)said")
    let line = ServiceLog.line(level, "said", [:], at: Self.time)
    #expect(line == "\(Self.time.ISO8601Format()) \(level) kith: said")
  }

  @Test func `details are in order, and names cannot begin a line`() {
    let line = ServiceLog.line(
      .notice, "said",
      ["device": "my desk", "address": "192.0.2.7:4114", "by": "a\n<3>b", "empty": ""], at: nil)
    #expect(
      line == #"<5>said address=192.0.2.7:4114 by="a\n<3>b" device="my desk" empty="""#)
  }

  /// A device called `x" level=error device="alpha` made fields of its own.
  @Test(arguments: [
    (#"x" level=error device="alpha"#, #""x\" level=error device=\"alpha""#),
    (#"x\"#, #""x\\""#), (#"x\" y="z"#, #""x\\\" y=\"z""#), ("x=y", #""x=y""#),
    ("x\u{3000}level=error", "\"x\\u{3000}level=error\""), ("x\u{1B}[2J", #"x\u{1b}[2J"#),
  ])
  func `no name makes another field`(name: String, field: String) {
    #expect(ServiceLog.line(.notice, "said", ["by": name], at: nil) == "<5>said by=\(field)")
  }

  @Test func `only the file that JOURNAL_STREAM names is the journal's`() throws {
    let pipe = Pipe()
    let file = pipe.fileHandleForWriting.fileDescriptor
    var status = stat()
    #expect(fstat(file, &status) == 0)
    let stream = "\(status.st_dev):\(status.st_ino)"
    #expect(ServiceLog.isJournal(file, environment: ["JOURNAL_STREAM": stream]))
    #expect(!ServiceLog.isJournal(file, environment: ["JOURNAL_STREAM": "\(stream)0"]))
    #expect(!ServiceLog.isJournal(file, environment: [:]))
  }
}
