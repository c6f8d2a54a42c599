import Testing

@testable import KithTerminal

@Suite("Tables, sizes and times")
struct TableTests {
  @Test func `columns are aligned and no line ends in a space`() {
    var table = Table([("NAME", .left), ("SIZE", .right), ("NOTE", .left)])
    table.add(["a", "1 B", ""])
    table.add(["longer", "12 KiB", "yes"])
    table.add(["日本", "", "wide"])
    #expect(
      table.text() == """
        NAME      SIZE  NOTE
        a          1 B
        longer  12 KiB  yes
        日本            wide
        """)
  }

  @Test func `colours only where they are allowed`() {
    var table = Table([("", .left), ("", .left)])
    table.add([Table.Cell("ok", .good), Table.Cell("x", .plain)])
    #expect(table.text() == "ok  x")
    #expect(table.text(Style(isColoured: true)) == "\u{1B}[32mok\u{1B}[0m  x")
    #expect(Terminal.allowsColour(environment: [:], isTerminal: true))
    #expect(Terminal.allowsColour(environment: ["NO_COLOR": ""], isTerminal: true))
    #expect(!Terminal.allowsColour(environment: ["NO_COLOR": "1"], isTerminal: true))
    #expect(!Terminal.allowsColour(environment: ["TERM": "dumb"], isTerminal: true))
    #expect(!Terminal.allowsColour(environment: [:], isTerminal: false))
  }

  @Test(arguments: [
    (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (1_536, "1.5 KiB"),
    (1_048_576, "1.0 MiB"), (33_554_432, "32.0 MiB"), (.max, "8388608.0 TiB"),
  ])
  func sizes(bytes: Int, text: String) {
    #expect(Humane.bytes(bytes) == text)
  }

  @Test(arguments: [
    (0.000000087, "87 ns"), (0.0000123, "12.3 µs"), (0.000456, "456 µs"), (0.00342, "3.42 ms"),
    (0.25, "250 ms"), (12.345, "12.35 s"),
  ])
  func durations(seconds: Double, text: String) {
    #expect(Humane.duration(seconds: seconds) == text)
  }

  @Test(
    arguments: [
      (0, "now"), (59_000, "59 s ago"), (61_000, "1 min ago"), (7_200_000, "2 h ago"),
      (90_000_000, "1 day ago"), (864_000_000, "10 days ago"),
    ] as [(UInt64, String)])
  func times(ago: UInt64, text: String) {
    #expect(Humane.ago(1_000_000_000_000 - ago, now: 1_000_000_000_000) == text)
  }

  @Test func numbers() {
    #expect(Humane.count(1_234_567) == "1,234,567")
    #expect(Humane.count(-1_000) == "-1,000")
    #expect(Humane.count(1, "key") == "1 key")
    #expect(Humane.count(264, "key") == "264 keys")
    #expect(Humane.percent(1, of: 1_000_000) == "1 %")
    #expect(Humane.percent(0, of: 10) == "0 %")
    #expect(Humane.decimals(-0.04, 1) == "0.0")
    #expect(Humane.decimals(2.345, 2) == "2.35")
  }

  @Test func `what other devices say cannot move the cursor`() {
    #expect(Columns.printable("a\u{1B}[2Jb\n") == "a\\u{1b}[2Jb\\n")
    #expect(Columns.printable("\u{202E}evil") == "\\u{202e}evil")
    #expect(Columns.printable("a\u{200F}b\u{61C}") == "a\\u{200f}b\\u{61c}")
    #expect(Columns.printable("naïve ✓") == "naïve ✓")
    #expect(Columns.printable("abcdef", limit: 3) == "abc…")
  }

  @Test func `a bar keeps to its columns`() {
    #expect(ProgressBar.line("importing", 5, 10, columns: 40).hasSuffix(" 5/10"))
    for columns in 0...100 {
      #expect(Columns.width(ProgressBar.line("importing", 264, 264, columns: columns)) <= columns)
    }
  }
}
