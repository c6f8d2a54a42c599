import Foundation
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

  @Test func `a table fits a terminal, and is whole elsewhere`() {
    var table = Table([("KEY", .cut), ("SIZE", .right), ("VALUE", .cut), ("WHY", .wrapped)])
    let (key, value) = (String(repeating: "k", count: 40), String(repeating: "日", count: 40))
    table.add([.init(key), "1 B", .init(value), "it is too long for one line of a terminal"])
    table.add(["a", "12 KiB", "b", ""])
    #expect(table.text().contains(key) && table.text().contains(value))
    for columns in [60, 80, 100] {
      let text = table.text(Style(isColoured: false, columns: columns))
      let lines = text.split(separator: "\n").map(String.init)
      #expect(lines.allSatisfy { Columns.width($0) <= columns }, "\(text)")
      #expect(lines.allSatisfy { !$0.hasSuffix(" ") })
      #expect(lines.count > 3 && lines[1].contains("k…") && lines[1].contains("日…"))
      let words = lines.joined(separator: " ").split(separator: " ")
      #expect(words.suffix(9).contains("terminal") || words.contains("terminal"))
    }
    let wide = table.text(Style(isColoured: false, columns: 300))
    #expect(wide == table.text())
    // Too narrow for what must be whole: nothing is lost but the fit.
    #expect(table.text(Style(isColoured: false, columns: 5)).contains("12 KiB"))
  }

  @Test func `a text for the next command is whole, on a line of its own if need be`() {
    var table = Table([("CARRIER", .whole), ("FOR", .left), ("OBJECTS", .right), ("NOTE", .cut)])
    table.add(["folder /media/anna/a", "this device", "12", "a note that is long enough to be cut"])
    table.add(["folder /media/anna/another one", "the account", "3", ""])
    table.add(["folder /a", "this device", "3", ""])
    #expect(
      table.text(Style(isColoured: false, columns: 50)) == """
        CARRIER       FOR          OBJECTS  NOTE
        folder /media/anna/a
                      this device       12  a note that i…
        folder /media/anna/another one
                      the account        3
        folder /a     this device        3
        """)
    let wide = table.text(Style(isColoured: false, columns: 60)).split(separator: "\n")
    #expect(wide.count == 5 && wide[1].contains("anna/a  this device"), "\(wide)")
    #expect(table.text().split(separator: "\n").count == 4)
  }

  @Test func `one long text does not cut all others`() {
    var table = Table([("KEY", .whole), ("TYPE", .left), ("SIZE", .right), ("VALUE", .cut)])
    table.add([.init(String(repeating: "k", count: 64)), "string", "12 B", "dark"])
    table.add(["theme", "string", "40 B", "a value that is as long as a line may be"])
    #expect(
      table.text(Style(isColoured: false, columns: 80)).hasSuffix(
        "theme         string  40 B  a value that is as long as a line may be"))
  }

  @Test(arguments: [
    ("⏰", 2), ("✅", 2), ("🆗", 2), ("🀄", 2), ("⭐", 2), ("🇩🇪", 2), ("👨\u{200D}👩\u{200D}👧", 2),
    ("日", 2),
    ("ﾊ", 1), ("ハ", 2), ("Ａ", 2), ("한", 2), ("❤", 1), ("❤\u{FE0F}", 2), ("✓", 1), ("→", 1),
    ("é", 1),
    ("e\u{301}", 1), ("☎", 1), ("🌶", 1), ("𠀀", 2), ("#", 1), ("ab", 2), ("㉑", 2),
  ])
  func `characters are as wide as terminals draw them`(text: String, columns: Int) {
    #expect(Columns.width(text) == columns)
  }

  @Test func `facts go on below themselves`() {
    var facts = Table()
    facts.add(fact: "node", "running as process 4711, listening on [::]:4114, and on others")
    #expect(
      facts.text(Style(isColoured: false, columns: 40)) == """
        node  running as process 4711, listening
              on [::]:4114, and on others
        """)
  }

  @Test func `text is cut and broken by columns, not characters`() {
    #expect(Columns.cut("abcdef", to: 6) == "abcdef")
    #expect(Columns.cut("abcdefg", to: 6) == "abcde…")
    #expect(Columns.cut("日本語", to: 4) == "日…")
    #expect(Columns.wrapped("one two three", to: 7) == ["one two", "three"])
    #expect(Columns.wrapped("abcdefgh ij", to: 3) == ["abc", "def", "gh", "ij"])
    #expect(Columns.wrapped("", to: 3) == [""])
    #expect(Columns.wrapped("日本語", to: 4) == ["日本", "語"])
  }

  @Test func `colours only where they are allowed`() {
    var table = Table()
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
    #expect(Format.bytes(bytes) == text)
  }

  @Test(arguments: [
    (0.000000087, "87 ns"), (0.0000123, "12.3 µs"), (0.000456, "456 µs"), (0.00342, "3.42 ms"),
    (0.25, "250 ms"), (12.345, "12.35 s"),
  ])
  func durations(seconds: Double, text: String) {
    #expect(Format.duration(seconds: seconds) == text)
  }

  @Test(
    arguments: [
      (0, "now"), (59_000, "59 s ago"), (61_000, "1 min ago"), (7_200_000, "2 h ago"),
      (90_000_000, "1 day ago"), (864_000_000, "10 days ago"),
    ] as [(UInt64, String)])
  func times(ago: UInt64, text: String) {
    #expect(Format.ago(1_000_000_000_000 - ago, now: 1_000_000_000_000) == text)
  }

  @Test func numbers() {
    #expect(Format.count(1_234_567) == "1,234,567")
    #expect(Format.count(-1_000) == "-1,000")
    #expect(Format.count(1, "key") == "1 key")
    #expect(Format.count(264, "key") == "264 keys")
    #expect(Format.percent(1, of: 1_000_000) == "1 %")
    #expect(Format.percent(0, of: 10) == "0 %")
    #expect(Format.decimals(-0.04, 1) == "0.0")
    #expect(Format.decimals(2.345, 2) == "2.35")
  }

  @Test func `texts of other devices cannot move the cursor`() {
    #expect(Columns.printable("a\u{1B}[2Jb\n") == "a\\u{1b}[2Jb\\n")
    #expect(Columns.printable("\u{202E}evil") == "\\u{202e}evil")
    #expect(Columns.printable("a\u{200F}b\u{61C}") == "a\\u{200f}b\\u{61c}")
    #expect(Columns.printable("naïve ✓") == "naïve ✓")
    #expect(Columns.printable("abcdef", limit: 3) == "abc…")
  }

  @Test func `names that differ in what is not seen do not look alike`() {
    for scalar in [
      "\u{200B}", "\u{200D}", "\u{200E}", "\u{2060}", "\u{FEFF}", "\u{E0041}", "\u{AD}",
    ] {
      #expect(Columns.printable("lap\(scalar)top").hasPrefix("lap\\u{"), "\(scalar.unicodeScalars)")
      #expect(Columns.printable("lap\(scalar)top").hasSuffix("}top"))
    }
    #expect(Columns.printable("❤\u{FE0F}") == "❤\u{FE0F}")
  }

  /// Swift's literals have none.
  private static func noncharacter(_ number: UInt16) -> String {
    String(decoding: [number], as: UTF16.self)
  }

  @Test func `texts that differ in blanks, ends or backslashes do not look alike`() {
    let texts: [String] = [
      "a b", "a\u{A0}b", "a\u{2003}b", "a\u{3000}b", "a\u{2800}b", "a b ", " a b", "a  b",
      "a b\u{FE0F}", "a b" + Self.noncharacter(0xFFFE), "a b\u{1D173}",
      "a b" + Self.noncharacter(0xFDD0), "a b1\u{FE0F}",
      "a b1", #"a\nb"#, "a\nb", #"a\\nb"#, #"a\tb"#, "a\tb", #"a\u{a0}b"#, "", " ", "  ",
    ]
    let shown = texts.map { Columns.printable($0) }
    #expect(Set(shown.map { Array($0.utf8) }).count == texts.count, "\(shown)")
    for text in shown.dropFirst() where !text.isEmpty {
      #expect(!text.hasPrefix(" ") && !text.hasSuffix(" "))
      let isPlain = text.unicodeScalars.allSatisfy { $0 == " " || ("!"..."~").contains($0) }
      #expect(isPlain, "\(text)")
    }
    #expect(Columns.printable(#"a\nb "#) == #"a\\nb\u{20}"#)
  }

  @Test func `a sentence that quotes a shown text shows it no otherwise`() {
    let quoted = Columns.printable("a\\n\u{A0}\u{1B} ")
    #expect(Columns.sentence("“\(quoted)” is missing. ") == "“\(quoted)” is missing. ")
    var table = Table()
    table.add([.init(quoted), "x"])
    #expect(table.text() == quoted + "  x")
  }

  @Test func `names that Unicode calls equivalent do not look alike`() {
    let groups = [
      ["caf\u{E9}", "cafe\u{301}"], ["\u{C5}", "A\u{30A}", "\u{212B}"], ["K", "\u{212A}"],
      ["\u{AC00}", "\u{1100}\u{1161}"],
      ["\u{AC01}", "\u{AC00}\u{11A8}", "\u{1100}\u{1161}\u{11A8}"],
      ["\u{1EAD}", "a\u{323}\u{302}", "a\u{302}\u{323}", "\u{E2}\u{323}", "\u{1EA1}\u{302}"],
      ["\u{8C48}", "\u{F900}"], ["q\u{323}\u{307}", "q\u{307}\u{323}"],
      ["\u{9CB}", "\u{9C7}\u{9BE}"], ["\u{915}\u{93C}", "\u{958}"],
    ]
    for group in groups {
      let shown = Set(
        group.map { Columns.printable($0).precomposedStringWithCanonicalMapping })
      #expect(shown.count == group.count, "\(shown)")
      #expect(Columns.printable(group[0]).utf8.elementsEqual(group[0].utf8))
    }
    #expect(Columns.printable("cafe\u{301}") == "cafe\\u{301}")
  }

  /// Every character of Unicode, in the middle of text.
  @Test func `a terminal gets nothing of a value that it would obey`() {
    for value in (0...0x10FFFF as ClosedRange<UInt32>) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let shown = Columns.readable("a\(scalar)b") + Columns.coloured("a\(scalar)[2Jb")
      let isObeyed = shown.unicodeScalars.contains { other in
        switch other.value {
        case 0x0A, 0x09: false
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
      }
      if isObeyed { Issue.record("U+\(String(value, radix: 16)) reaches the terminal") }
    }
    #expect(Columns.readable("\u{1B}]52;c;eA==\u{7}") == "\\u{1b}]52;c;eA==\\u{7}")
    #expect(Columns.readable("plain 日本 ❤\u{FE0F}\u{200D}🔥\t") == "plain 日本 ❤\u{FE0F}\u{200D}🔥\t")
  }

  @Test func `colours stay, and no other sequence does`() {
    let coloured = Style(isColoured: true)(.bad, "no") + "\u{1B}[38;5;16;48;5;231m \u{1B}[0m\n"
    #expect(Columns.coloured(coloured) == coloured)
    for foreign in [
      "\u{1B}[2J", "\u{1B}[3", "\u{1B}[3;", "\u{1B}]0;m", "\u{1B}[ 1m", "\u{1B}", "\u{9B}1m",
    ] {
      #expect(Columns.coloured("a" + foreign).hasPrefix("a\\u{"), "\(foreign.unicodeScalars)")
    }
  }

  @Test func `a cell is one harmless line, whatever text it gets`() {
    var table = Table()
    table.add(["a", Table.Cell("b\u{1B}[2J\nkith: forged\u{202E}\u{200B}", .good)])
    #expect(table.text() == #"a  b\u{1b}[2J\nkith: forged\u{202e}\u{200b}"#)
  }

  @Test func `no line of a value looks like a message of the tool`() {
    for end in ["\n", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{2029}", "\u{B}", "\u{C}"] {
      let shown = Columns.readable("dark\(end)kith: the device was removed")
      let lines = shown.split(separator: "\n", omittingEmptySubsequences: false)
      #expect(!lines.contains { $0.hasPrefix("kith") }, "\(shown)")
    }
    #expect(Columns.readable("one\ntwo\n") == "one\n  two\n  ")
  }

  @Test func `a bar keeps to its columns`() {
    #expect(ProgressBar.line("importing", 5, 10, columns: 40).hasSuffix(" 5/10"))
    for columns in 0...100 {
      #expect(Columns.width(ProgressBar.line("importing", 264, 264, columns: columns)) <= columns)
    }
  }
}
