import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Types of dconf dumps")
struct DconfTypesTests {
  /// Two devices import a full store each apart: half of the keys are hidden then.
  @Test func `the forms of hidden keys, and of keys still to come, are kept`() {
    func key(_ number: Int) -> Key { Key("k\(number)") }
    let forms = Dictionary(
      uniqueKeysWithValues: (0..<2_048).map { (key($0), PropertyListValue.string("u")) })
    let shownOrHidden = Set((0..<1_024).map(key))
    #expect(DconfTypes.kept(forms, present: shownOrHidden, limit: 1_024) == forms)
    let bounded = DconfTypes.kept(forms, present: shownOrHidden, limit: 1_023)
    #expect(Set(bounded.keys) == shownOrHidden)
    #expect(DconfTypes.kept(forms, present: Set(forms.keys), limit: 0) == forms)
  }
}

@Suite("Importing dconf dumps")
struct DconfImportTests: ImportReading {
  @Test func `a desktop's settings`() throws {
    let desktop = try file("Examples/Settings/desktop.dconf")
    #expect(desktop.format == .dconf && desktop.skipped.isEmpty)
    #expect(desktop.entries.count >= 60)
    #expect(value("org/gnome/desktop/interface/scaling-factor", in: desktop) == 2)
    #expect(value("org/gnome/shell/disabled-extensions", in: desktop) == [])
    #expect(value("last-backup", in: desktop) == 1_795_255_200)
    let working: PropertyListValue = ["mon": true, "tue": true, "sat": false]
    #expect(value("org/gnome/evolution/calendar/working-days", in: desktop) == working)
  }

  private func export(_ file: ImportedFile) -> DconfDocument {
    DconfDocument(entries: file.entries.map { ($0.key, $0.value) }, forms: file.forms)
  }

  @Test func `a desktop's settings come back as they were`() throws {
    let desktop = try file("Examples/Settings/desktop.dconf")
    let document = export(desktop)
    #expect(document.skipped.isEmpty && document.guessed.isEmpty)
    let again = try read(document.text)
    #expect(again.entries.count == desktop.entries.count)
    for entry in again.entries {
      #expect(value(entry.key, in: desktop) == entry.value)
      #expect(again.forms[Key(entry.key)] == desktop.forms[Key(entry.key)])
    }
    for line in [
      "scaling-factor=uint32 2", "maximize=@as []", "window-size=(1130, 725)",
      "thumbnail-limit=uint64 64", "last-backup=int64 1795255200",
      "sources=[('xkb', 'us+altgr-intl'), ('xkb', 'is'), ('ibus', 'mozc-jp')]",
      "locations=[<(uint32 2, <('Reykjavík', 'BIRK', true, [(1.1184, -0.3829)], "
        + "[(1.1196, -0.3829)])>)>]",
    ] {
      #expect(document.text.split(separator: "\n").contains { $0 == line }, "\(line)")
    }
  }

  @Test func `a changed value keeps its type if it fits`() throws {
    var dump = try read(
      """
      [a]
      byte=byte 0x05
      list=@as []
      n=uint32 5
      pairs=[('a', uint32 1)]
      real=0.5
      same=uint32 5
      variants={'x': <uint32 5>, 'y': <@as []>}
      wide=uint32 5
      """)
    let new: [String: PropertyListValue] = [
      "byte": 6, "list": ["x"], "n": -1, "pairs": [["b", 2], ["c", 3]], "real": 2,
      "variants": ["x": 6, "y": true, "z": 1], "wide": 7,
    ]
    dump.entries = dump.entries.map { entry in
      .init(key: entry.key, value: new[String(entry.key.dropFirst(2))] ?? entry.value)
    }
    let document = export(dump)
    #expect(
      document.text == """
        [a]
        byte=byte 0x06
        list=['x']
        n=-1
        pairs=[('b', uint32 2), ('c', 3)]
        real=2.0
        same=uint32 5
        variants={'x': <uint32 6>, 'y': <true>, 'z': <1>}
        wide=uint32 7
        """)
    #expect(document.guessed == ["a/n"])
  }

  /// Each was written as '' or as a text that GLib refuses, with status 0.
  @Test func `a value that dconf cannot have is left out and named`() throws {
    func nested(_ depth: Int, _ wrap: (PropertyListValue) -> PropertyListValue) -> PropertyListValue
    {
      (0..<depth).reduce(1) { value, _ in wrap(value) }
    }
    let values: [PropertyListValue] = [
      .array((0..<254).map { $0.isMultiple(of: 2) ? 1 : "a" }), nested(64) { ["a": $0] },
      nested(64) { ["a": $0, "b": true] }, "a\u{0}b", ["a\u{0}b"], ["a\u{0}b": 1],
      [["x": "\u{0}"], 1], .double(.leastNonzeroMagnitude),
    ]
    for value in values {
      let document = DconfDocument(entries: [("k", value), ("l", true)], forms: [:])
      #expect(
        document.unwritable == ["k"] && document.guessed.isEmpty, "\(document.text.prefix(80))")
      #expect(document.text == "[/]\nl=true" && document.skipped.isEmpty)
    }
    // The deepest that GLib reads.
    for value in [nested(63) { ["a": $0, "b": true] }, nested(32) { ["a": $0] }] {
      let document = DconfDocument(entries: [("k", value)], forms: [:])
      #expect(document.unwritable.isEmpty)
      #expect(try read(document.text).entries == [.init(key: "k", value: value)])
    }
  }

  /// GLib's own text of each, with the types that a reader must know.
  @Test(arguments: [
    "byte 0x05", "int16 -5", "uint16 5", "5", "uint32 5", "int64 5", "uint64 5", "handle 5", "0.5",
    "true", "'x'", "objectpath '/a'", "signature 'as'", "@as []", "@a{sv} {}", "@ay []",
    "[byte 0x00, 0xff]", "b'a\\001'", "[b'a', b'b']", "[uint32 1, 2]", "(1, 'a')", "('a',)", "()",
    "[(uint32 1, @as []), (2, ['x'])]", "[b'a', [0x78]]", "[@as [], ['x']]", "[@aay [], [b'x']]",
    "{'a', <5>}",
    "{uint32 1: 'x', 2: 'y'}", "{'a': uint32 1, 'b': 2}", "{'a': <uint32 1>, 'b': <'x'>}",
    "[<uint32 1>, <@as []>]", "<<uint32 5>>", "@mb true", "@mb nothing", "@ms 'x'", "@mmi just 5",
    "{'a': <@mb nothing>, 'b': <(1, <int64 2>)>}", "[{'a': <{'b': <uint32 1>}>}, {}]",
    "[objectpath '/a', '/b']", "@(uas) (1, [])", "[(@mi nothing, 1), (5, 2)]",
  ])
  func `the types of a dump come back`(text: String) throws {
    let dump = try read("[a]\nk=\(text)")
    let document = export(dump)
    let again = try read(document.text)
    #expect(again.entries == dump.entries && again.forms == dump.forms, "\(document.text)")
    #expect(document.guessed.isEmpty)
    if !text.hasPrefix("@(") { #expect(document.text == "[a]\nk=\(text)") }
  }

  @Test(
    arguments: [
      "u", ["u"], ["v", "u"], "", "(", "a", "@u", "a*", "m", ["a{sv}", ["a": ["v", ["v", "q"]]]], 5,
      .string(String(repeating: "a", count: 300)), .string("s]\n[x]\ny='1'"),
    ] as [PropertyListValue])
  func `no form of another device breaks a line or the value`(form: PropertyListValue) throws {
    for value in ["a\n[b]\nc=1", 5, [1], ["a": 1], .data(Data([0]))] as [PropertyListValue] {
      let text = DconfDocument(entries: [("k", value)], forms: [Key("k"): form]).text
      #expect(text.split(separator: "\n").count == 2)
      #expect(try read(text).entries == [.init(key: "k", value: value)])
    }
  }

  @Test func `a terminal obeys no character of an exported value`() throws {
    let text = "a\u{202E}b\u{1B}[2J\u{9B}\u{200F}\u{2028}c"
    let document = DconfDocument(entries: [("k", .string(text))], forms: [:]).text
    #expect(
      document == #"""
        [/]
        k='a\u202eb\u001b[2J\u009b\u200f\u2028c'
        """#)
    #expect(try read(document).entries == [.init(key: "k", value: .string(text))])
  }

  @Test(
    arguments: [
      true, 5, .integer(.min), -0.5, 1e300, "it's \"\\\n\u{1}\u{85}é", .data(Data([0, 255])),
      .data(Data()), [], [1, 5_000_000_000], [1, "x", [1.0, 2.0]], [[], ["x"]], [:],
      ["a": 1, "b'": 2],
      ["a": 1, "b": [true, ["c": .data(Data([7]))]]],
    ] as [PropertyListValue])
  func `every value but a date is read back from its text`(value: PropertyListValue) throws {
    let text = DconfDocument(entries: [("a/b/c", value), ("d", value)], forms: [:]).text
    let file = try read(text)
    #expect(file.entries == [.init(key: "d", value: value), .init(key: "a/b/c", value: value)])
    #expect(file.forms[Key("d")] == .string(GVariantText.defaultType(value)))
  }

  @Test func `keys that dconf cannot have are left out, by name`() {
    let keys = [
      "", "/a", "a/", "a//b", "a=b", "a\nb", "#a", "[a", " a", "recent[0]/a", "]/a", "a[de]",
    ]
    let entries = (keys + ["ok"]).map { (key: $0, value: PropertyListValue.integer(1)) }
    let document = DconfDocument(entries: entries, forms: [:])
    #expect(document.text == "[/]\nok=1" && document.skipped == keys)
  }
}

@Suite("GVariant text")
struct GVariantReaderTests {
  @Test(
    arguments: [
      ("true", true), ("5", 5), ("-5", -5), ("uint32 5", 5), ("byte 0x1f", 31), ("int16 010", 8),
      ("1.0", 1.0), ("1e3", 1000.0), ("-inf", .double(-.infinity)), ("@d 5", 5.0),
      ("double 5", 5.0),
      ("''", ""), (#"'it\'s \u00e9\U0001F9ED\n'"#, "it's é🧭\n"), ("\"don't\"", "don't"),
      ("objectpath '/a'", "/a"), ("signature 'as'", "as"), ("handle 3", 3), ("@as []", []),
      ("[1.5, 2]", [1.5, 2.0]), ("@ad [1, 2]", [1.0, 2.0]), ("('a', 1)", ["a", 1]), ("(1,)", [1]),
      ("()", []), ("{'a': <1>, 'b': <['x']>}", ["a": 1, "b": ["x"]]), ("@a{sv} {}", [:]),
      ("{uint32 1: 'x', 2: 'y'}", ["1": "x", "2": "y"]), ("{'k', 1}", ["k", 1]), ("<<'v'>>", "v"),
      ("just 5", 5), ("@ms 'x'", "x"),
      ("@ms nothing", []), (#"b'a\001\\'"#, .data(Data([0x61, 1, 0x5C]))),
      ("[byte 0x01, 0xff]", .data(Data([1, 255]))), ("@ay []", .data(Data())),
      ("@d 010", 10.0), ("double 010", 10.0), ("[010, 1.5]", [10.0, 1.5]), ("@ad [010]", [10.0]),
      ("[1.5, 010]", [1.5, 10.0]), ("[[010], [1.5]]", [[10.0], [1.5]]), ("@d 0x10", 16.0),
      ("@d 0x1fffffffffffff0", .double(0x1fffffffffffff0)),
      ("@d 0x1p-1074", .double(.leastNonzeroMagnitude)),
      ("@(dd) (010, 1)", [10.0, 1.0]), ("{'a': 1.5, 'b': 010}", ["a": 1.5, "b": 10.0]),
      ("<010>", 8), ("[{'a', 1}, {'b', 2}]", ["a": 1, "b": 2]), ("[[], ['x']]", [[], ["x"]]),
      ("[uint32 1, 010]", [1, 8]), ("uint64 9223372036854775807", .integer(.max)),
    ] as [(String, PropertyListValue)])
  func read(text: String, value: PropertyListValue) throws {
    var reader = GVariantReader(text)
    #expect(try reader.read().value == value)
  }

  @Test(arguments: [
    "", "nothing", "@mas nothing", "[nothing]", "tru", "'open", "[1", "[1 2]", "{'a' 1}", "<1",
    "1 2", "0x", "09",
    "99999999999999999999", "{'a': 1, 'a': 2}", #"'\ud800'"#, "b", "@", "[byte 256]", "byte -1",
    "int16 32768", "@z 1", "@a 1", "--1",
    // GLib refuses these too: not of the type that the text says, or of none.
    "@s 5", "@b 1", "@y 'a'", "@as [1]", "@i 5.0", "uint32 'x'", "@(si) (1, 'x')", "@(ii) (1,)",
    "@(i) (1, 2)", "objectpath 'a'", "signature 'z'", "[1, 'a']", "1E5", "NaN", "5000000000", "[]",
    "{}", "[[]]", "@* 5", "@a* []", "@^ay b'x'", "@v 5", "@i <5>", "@a{si} {'a': 'b'}",
    "@a{is} {'a': 'b'}", "@mi 'x'", "@i just 5", "[1, <1>]", "(1)", "@ay [256]", "@ay ['a']",
    "{[1]: 2}", "{'a': 1, 'b': 'c'}", "{'a': 1, 'b': 1.5}", "[NaN, 1.5]", "b'\\000'", "'\\u0000'",
    "[true, 1]", "@d 'x'", "@d 1e400", "@d 1e-400", "1e-400",
    "@d 0x20000000000001", "@d 0x1.00000000000001",
    "1.0x",
    "uint64 18446744073709551616", "uint64 -1", "@i 08", "[@s 'a', @o '/a']", "@s b'x'", "@as b'x'",
    "string uint32 5", "@() (1,)", "@i true",
    String(repeating: "[", count: 100_000), String(repeating: "just ", count: 100_000),
  ])
  func refuse(text: String) {
    var reader = GVariantReader(text)
    #expect(throws: ImportError.self) { try reader.read() }
  }
}

@Suite("Dumps of dconf", .timeLimit(.minutes(5)))
struct DconfTests {
  /// Imports a dump, after a dry run that must end alike; returns the status and the talk.
  private func load(
    _ dump: String, _ household: Household, _ member: Household.Member, _ words: String...
  ) async throws -> (status: Int32, output: String) {
    let file = household.root.appending(path: "dump").path
    try dump.write(toFile: file, atomically: true, encoding: .utf8)
    let command = ["import", file, "--directory", member.directory.path] + words
    let dry = try await KithProcess.run(command + ["--dry-run"], in: household.root)
    let real = try await KithProcess.run(command, in: household.root)
    #expect(dry.status == real.status, "\(dry) \(real)")
    return (real.status, real.output + real.talk)
  }

  private func export(
    _ household: Household, _ member: Household.Member
  ) async throws -> (lines: [Substring], talk: String) {
    let result = try await household.run(member, "export", "--format", "dconf")
    return (result.output.split(separator: "\n"), result.talk)
  }

  @Test func `as many keys as a store has keep their types, on all devices`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    let dump = (["[a]"] + (0..<1_024).map { "k\($0)=uint32 \($0)" }).joined(separator: "\n")
    #expect(try await load(dump, household, alpha).status == 0)
    for member in [alpha, beta] {
      try await household.start(member)
    }
    try await eventually("the types on the other device") {
      try await export(household, beta).lines.count { $0.contains("=uint32 ") } == 1_024
    }
    #expect(try await export(household, beta).talk.isEmpty)
    // The store is full: a dump of other values of the same keys still has its types.
    let other = (["[a]"] + (0..<1_024).map { "k\($0)=int64 \($0)" }).joined(separator: "\n")
    #expect(try await load(other, household, alpha).status == 0)
    #expect(try await export(household, alpha).lines.count { $0.contains("=int64 ") } == 1_024)
    // One key too many is refused alone, as the dry run says.
    #expect(try await load("[a]\nmore=uint32 1\nk0=uint32 1", household, alpha).status == 3)
    #expect(try await export(household, alpha).lines.contains("k0=uint32 1"))
    let keys = try await household.run(alpha, "ls", "--json").output
    #expect(!keys.contains("dconf"))
    #expect(try await household.run(alpha, "stores", "--all").output.contains("kith.") == false)
  }

  @Test func `a full store of bytes keeps its types, also while signed out`() async throws {
    let household = try Household()
    let alpha = Household.Member(
      name: "alpha", directory: household.root.appending(path: "alpha"))
    let text = String(repeating: "x", count: 250_000)
    let dump = (["[/]", "n=uint32 1"] + (0..<4).map { "k\($0)=('\(text)', uint32 2)" })
      .joined(separator: "\n")
    #expect(try await load(dump, household, alpha).status == 0)
    let lines = try await export(household, alpha).lines
    #expect(lines.count { $0.hasSuffix("', uint32 2)") } == 4 && lines.contains("n=uint32 1"))
  }

  @Test func `a dry run asks for room for the store, and for the types`() async throws {
    let household = try Household()
    let alpha = Household.Member(
      name: "alpha", directory: household.root.appending(path: "alpha"))
    try household.openStores(of: alpha, Limits.stores)
    let full = try await load("[a]\nk=1", household, alpha, "--store", "zz", "--create")
    #expect(full.status == 3 && full.output.contains("256 stores"), "\(full)")
    let untyped = try await load("[a]\nk=uint32 1", household, alpha, "--store", "s5")
    #expect(untyped.status == 3 && untyped.output.contains("types of some values"), "\(untyped)")
    #expect(try await load("[a]\nk='x'", household, alpha, "--store", "s5").status == 0)
  }

  @Test func `types that a store cannot hold are left out, with status 3`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let deep = String(repeating: "<", count: 70) + "1" + String(repeating: ">", count: 70)
    let dump = "[a]\n" + (0..<70).map { "k\($0)=uint32 1\n" }.joined() + "a=\(deep)"
    #expect(try await load(dump, household, alpha).status == 3)
    #expect(try await export(household, alpha).lines.count { $0.contains("=uint32 1") } == 70)
  }

  @Test func `types that no dump told are named`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    #expect(try await load("[a]\nx=uint32 5\ny='text'", household, alpha).status == 0)
    #expect(try await export(household, alpha).talk.isEmpty)
    _ = try await household.run(alpha, "set", "a/x", "-1")
    _ = try await household.run(alpha, "set", "a/z", "5")
    _ = try await household.run(alpha, "set", "a/flag", "true")
    let talk = try await export(household, alpha).talk
    #expect(talk.contains("2 values") && talk.hasSuffix(": a/x, a/z\n"), "\(talk)")
  }
}
