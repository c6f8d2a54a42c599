import Testing

@testable import KithCommands

@Suite("Lines of a batch")
struct BatchLinesTests {
  @Test func `come whole, however they arrive`() {
    var lines = BatchLines()
    #expect(lines.take(Array("a".utf8)) == [])
    #expect(lines.take(Array("b\n\nc\nd".utf8)) == [Array("ab".utf8), [], Array("c".utf8)])
    #expect(lines.end() == Array("d".utf8))
    #expect(lines.end() == [])
  }

  @Test func `beyond the limit are dropped, and the next one is read`() {
    let full = [UInt8](repeating: UInt8(ascii: "x"), count: BatchLines.limit)
    var lines = BatchLines()
    #expect(lines.take(full + [UInt8(ascii: "\n")]) == [full])
    #expect(lines.take(full) == [])
    #expect(lines.take(Array("x".utf8)) == [])
    #expect(lines.take(Array("xx\nab\n".utf8)) == [nil, Array("ab".utf8)])
    #expect(lines.take(full + full) == [])
    #expect(lines.end() == nil)
  }
}
