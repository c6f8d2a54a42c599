import Foundation
import Kith
import KithCore
import Testing

@testable import KithCommands

@Suite("Importing settings files")
struct ImportTests: ImportReading {
  @Test func `an editor's settings`() throws {
    let settings = try file("Examples/Settings/editor-settings.json")
    #expect(settings.format == .json && settings.skipped.isEmpty)
    #expect(settings.entries.count >= 220)
    #expect(settings.entries.allSatisfy { $0.key.utf8.count <= 64 })
    #expect(settings.entries.first?.key == "editor.fontFamily")
    #expect(value("editor.fontSize", in: settings) == 13)
    #expect(value("window.zoomLevel", in: settings) == 0.5)
    #expect(value("editor.rulers", in: settings) == [80, 100, 120])
  }

  @Test func `comments and null in JSON`() throws {
    let settings = try read("// mine\n{ \"a\": 1, /* b */ \"b\": {\"c\": [null]}, }")
    #expect(settings.entries == [.init(key: "a", value: 1)])
    #expect(
      settings.skipped == [.init(key: "b", code: "notAValue", reason: "at .c[0]: null is no value")]
    )
    #expect(try read(#"{"$dictionary":{"$date":1}}"#).entries == [.init(key: "$date", value: 1)])
  }

  @Test func `integers that no value holds are refused`() throws {
    let file = try read(#"{"a": 99999999999999999999, "b": [9223372036854775807], "c": 1e20}"#)
    #expect(file.skipped.map(\.key) == ["a"])
    #expect(file.entries.map(\.value) == [[.integer(.max)], 1e20])
  }

  @Test(arguments: [
    "", "[1, 2]", "\"text\"", "hello", "{\"a\":", "GVariant....", "[a/b]\nno equals",
    "# x\nkey=1", "<plist><dict>", "bplist00",
  ])
  func `a file that cannot be imported`(text: String) {
    let error = #expect(throws: ImportError.self) { try read(text) }
    #expect(error?.description.isEmpty == false)
  }

  @Test(arguments: [
    #"{"a": 1, "b": 2, "a": 1, "c": {"d": [{"e": 1, "e": 2}]}}"#,
    """
    <plist><dict><key>a</key><integer>1</integer><key>b</key><integer>2</integer>
    <key>a</key><integer>1</integer><key>c</key><dict><key>d</key><array><dict>
    <key>e</key><integer>1</integer><key>e</key><integer>2</integer></dict></array></dict>
    </dict></plist>
    """,
    "[/]\na=1\nb=2\na=1\nc={'d': [{'e': 1, 'e': 2}]}",
  ])
  func `a key that a file has twice is refused, in all formats`(text: String) throws {
    let file = try read(text)
    #expect(file.entries == [.init(key: "b", value: 2)])
    #expect(file.skipped.map(\.key) == ["c", "a"])
    #expect(file.skipped[1].reason == "the file has the key 2 times; none of its values is taken")
    #expect(file.skipped[0].reason.contains("occurs twice in one dictionary"))
  }

  @Test(arguments: [
    "{\"\u{E9}\": 1, \"e\u{301}\": 2, \"n\": {\"\u{E9}\": 1, \"e\u{301}\": 2}}",
    "<plist><dict><key>\u{E9}</key><integer>1</integer><key>e\u{301}</key><integer>2</integer>"
      + "<key>n</key><dict><key>\u{E9}</key><integer>1</integer><key>e\u{301}</key>"
      + "<integer>2</integer></dict></dict></plist>",
    "[/]\n\u{E9}=1\ne\u{301}=2\nn={'\u{E9}': 1, 'e\u{301}': 2}",
  ])
  func `keys that Unicode calls equivalent are two, or named`(text: String) throws {
    let file = try read(text)
    let found = Dictionary(uniqueKeysWithValues: file.entries.map { (Key($0.key), $0.value) })
    #expect(found == [Key("\u{E9}"): 1, Key("e\u{301}"): 2])
    #expect(file.skipped.map(\.key) == ["n"])
    #expect(file.skipped[0].reason.contains("equivalent"))
  }

  @Test(arguments: ["UTF-16LE", "UTF-16BE"])
  func `UTF-16 is read, and other encodings are named`(name: String) throws {
    let encoding: String.Encoding = name == "UTF-16LE" ? .utf16LittleEndian : .utf16BigEndian
    for text in [
      #"{"a": "é🧭"}"#, "[/]\na='é🧭'",
      "<?xml version=\"1.0\" encoding=\"UTF-16\"?><plist><dict><key>a</key><string>é🧭</string>"
        + "</dict></plist>",
    ] {
      let data = try #require(("\u{FEFF}" + text).data(using: encoding))
      #expect(try ImportedFile(data).entries == [.init(key: "a", value: "é🧭")])
      let bare = try #require(text.data(using: encoding))
      let error = #expect(throws: ImportError.self) { try ImportedFile(bare) }
      #expect(error?.description.contains("iconv -f \(name)") == true)
      #expect(throws: ImportError.self) { try ImportedFile(data.dropLast()) }
    }
    let latin = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><plist><dict/></plist>"
    let error = #expect(throws: ImportError.self) { try read(latin) }
    #expect(error?.description.contains("ISO-8859-1") == true)
  }

  @Test(arguments: [
    "{\n    Locale = \"de_DE\";\n    Sizes =     (\n        1,\n        2\n    );\n}\n",
    "{ \"a b\" = 1; }", "// !$*UTF8*$!\n{\n\tarchiveVersion = 1;\n}", "(\n    a,\n    b\n)",
  ])
  func `the text form of a property list is named`(text: String) {
    let error = #expect(throws: ImportError.self) { try read(text) }
    #expect(error?.description.contains("plutil -convert xml1") == true)
  }

  @Test(arguments: [
    "[Filechooser Settings]\nLocationMode=path-bar\nShowHidden=false\nGeometryX=0",
    "[KDE][Panel][2]\nShade=true", "[Desktop Entry]\nType=Application\nTerminal=false",
    "[Colors]\nwindow=255,255,255", "[a]\nempty=",
    // The same text is another value there.
    "[package]\npath = 'C:\\new\\temp'", "[core]\n\tcompression = 1", "[core]\ncompression=010",
    "[Service]\nCPUQuota=010", "[PHP]\n; comment\nengine=1", "[a]\nk=1 # comment", "[a]\nk=1.10",
    "[a]\nk=1E5", "[a]\nk=+1", "[a]\nk=-0", "[a]\nk=0x10", "[a]\nk=\"text\"", "[a]\nk='C:\\dir'",
    "[a]\nk=[1,2]", "[a]\nk=[ 1, 2 ]", "[a]\nk=[1, 2,]", "[a]\nk=[]", "[a]\nk=\'\'\'\'",
    " [a]\nk=1",
    "[a]\nk=1 ", "[a]\nk=1\n# end", "[a]\nk={x = 1}", "[a]\nk=1_000", "[a]\nk=5000000000",
  ])
  func `an INI or TOML file is no dump of dconf`(text: String) {
    let error = #expect(throws: ImportError.self) { try read(text) }
    #expect(error?.description.contains("INI file") == true)
  }

  @Test func `a dump with a damaged value is read if a person says that it is one`() throws {
    let text = "[a]\nb=1\nc=tru\nd=uint64 18446744073709551615"
    #expect(throws: ImportError.self) { try read(text) }
    let edited = "# mine\n[a]\n b = [1,2]\n"
    #expect(
      try ImportedFile(Data(edited.utf8), as: .dconf).entries == [.init(key: "a/b", value: [1, 2])])
    let file = try ImportedFile(Data(text.utf8), as: .dconf)
    #expect(file.entries == [.init(key: "a/b", value: 1)])
    #expect(file.skipped.map(\.key) == ["a/c", "a/d"])
    // No value holds it, but the text is a dump's.
    #expect(try read("[a]\nb=1\nd=uint64 18446744073709551615").skipped.map(\.key) == ["a/d"])
  }

  @Test func `an export is told by its format, whatever else it has`() throws {
    let more = #""values": {"a": 1}, "exportedMilliseconds": 5, "version": 1}"#
    for start in [#"{"format": "kith export", "#, #"{"store": "s", "format": "kith export", "#] {
      #expect(try read(start + more).entries == [.init(key: "a", value: 1)])
    }
    for rest in [
      #""version": 1}"#, #""version": 1, "values": null}"#, #""values": {"a": 1}}"#,
      #""version": 2, "values": {}}"#, #""version": "1", "values": {}}"#,
      #""version": 1, "values": {}, "values": {"a": 1}}"#,
    ] {
      let text = #"{"format": "kith export", "store": "s", "# + rest
      let error = #expect(throws: ImportError.self) { try read(text) }
      #expect(error?.description.hasPrefix("this export ") == true)
    }
  }

  private static let keys = [
    "$date", "recent[0]/path", "x", "a b/c d", "a=b/c", "=", "#/a", "a/#", "é/e\u{301}",
    "a/\u{301}b", "=\u{301}", "[\u{301}", "a/b[de]", "/", " a/b", "a/b ", "a\n/b", "1/2", "[/x",
  ]
  private static let values: [PropertyListValue] = [
    1, .double(Double(bitPattern: 0x7FF8_0000_0000_0001)), "it's", .data(Data([0])), [1, [2.5]],
  ]

  @Test(arguments: keys) func `every export of a key imports again`(key: String) throws {
    for value in Self.values {
      let document = ExportDocument(store: "s", entries: [(key, value)])
      for text in [document.plain.text(), document.versioned.text()] {
        #expect(try read(text).entries == [.init(key: key, value: value)])
      }
    }
    let entries = [(key: key, value: PropertyListValue.string("a")), (key: "other", value: 1)]
    let dconf = DconfDocument(entries: entries, forms: [:])
    let file = try ImportedFile(Data(dconf.text.utf8), as: .dconf)
    #expect(file.skipped.isEmpty && file.entries.count + dconf.skipped.count == 2)
    #expect(dconf.skipped.isEmpty == (value(key, in: file) == "a"))
  }

  @Test func `an export of what looks like an export imports again`() throws {
    let entries = [(key: "format", value: PropertyListValue.string("kith export"))]
    let text = ExportDocument(store: "s", entries: entries).plain.text()
    #expect(try read(text).entries == [.init(key: "format", value: "kith export")])
  }

  @Test(arguments: [
    #"{"k": {"$date": 1439514154000}}"#, #"{"k": [{"$date": 5}]}"#,
    #"{"k": {"$date": {"$numberLong": "1439514154000"}}}"#,
    #"{"k": {"$date": 1439514154000.5}}"#, #"{"k": {"$date": 1.439514154e12}}"#,
  ])
  func `a date as a number is refused, as programs differ in what it counts`(
    text: String
  ) throws {
    let file = try read(text)
    #expect(file.entries.isEmpty && file.skipped.map(\.key) == ["k"])
  }
}

extension ImportTests {
  @Test(arguments: [
    #"{"a": {"b": [9007199254740993.0]}}"#, #"{"a": {"b": [12345678901234567890.5]}}"#,
    "<plist><dict><key>a</key><dict><key>b</key><array>"
      + "<real>3.14159265358979323846264338328</real></array></dict></dict></plist>",
    "[/]\na=[{'b': [9007199254740993.0]}]",
  ])
  func `a number that a double would round is refused by its place`(text: String) throws {
    let file = try read(text)
    #expect(file.entries.isEmpty)
    #expect(file.skipped.map(\.key) == ["a"])
    #expect(file.skipped.first?.reason.contains("more digits than a double keeps") == true)
  }

  @Test(arguments: [
    #"{"a": [{"$date": "2026-11-21T10:00:00.123456789Z"}], "b": 1}"#,
    "<plist><dict><key>a</key><array><date>2026-11-21T10:00:00.123456789Z</date></array>"
      + "<key>b</key><integer>1</integer></dict></plist>",
  ])
  func `a date that a double would round is refused by its place`(text: String) throws {
    let file = try read(text)
    #expect(file.entries == [.init(key: "b", value: 1)])
    #expect(file.skipped.map(\.key) == ["a"])
    #expect(file.skipped.first?.reason.contains("at [0]: ") == true)
  }
}

/// Reads files as `kith import` does.
protocol ImportReading {}

extension ImportReading {
  /// A file of the repository, by its path.
  func file(_ path: String) throws -> ImportedFile {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    return try ImportedFile(Data(contentsOf: root.appending(path: path)))
  }

  func samples(_ name: String) -> String { "Tests/KithCommandsTests/Samples/" + name }

  func value(_ key: String, in file: ImportedFile) -> PropertyListValue? {
    file.entries.first { $0.key == key }?.value
  }

  func read(_ text: String) throws -> ImportedFile {
    try ImportedFile(Data(text.utf8))
  }
}

@Suite("Writing what a file holds")
struct ImportRunTests {
  private func entries(_ count: Int, bytes: Int = 10) -> [ImportedFile.Entry] {
    (0..<count).map { index in
      ImportedFile.Entry(key: "k\(index)", value: .string(String(repeating: "x", count: bytes)))
    }
  }

  @Test func `in commits of a sensible size`() {
    #expect(ImportRun.chunks(of: entries(264)).map(\.count) == [64, 64, 64, 64, 8])
    #expect(ImportRun.chunks(of: entries(5, bytes: 60_000)).map(\.count) == [2, 2, 1])
    #expect(ImportRun.chunks(of: entries(2, bytes: 600_000)).map(\.count) == [1, 1])
    #expect(ImportRun.chunks(of: []).isEmpty)
  }

  @Test func `refused keys are found, all others are written`() async throws {
    var run = ImportRun()
    var written: [String] = []
    let bad = ["k3": KithError.Code.invalidKey, "k70": .quotaExceeded, "k71": .valueTooLarge]
    try await run.write(entries(100)) { chunk in
      written += chunk.map(\.key).filter { bad[$0] == nil }
      return chunk.map { entry in bad[entry.key].map { KithError($0, "no", key: .init(entry.key)) }
      }
    }
    #expect(written == run.imported)
    #expect(run.imported == (0..<100).map { "k\($0)" }.filter { bad[$0] == nil })
    #expect(run.refused.map(\.key) == ["k3", "k70", "k71"])
    #expect(run.refused.map(\.code) == ["invalidKey", "quotaExceeded", "valueTooLarge"])
  }

  @Test func `any other error ends the import`() async throws {
    var run = ImportRun()
    await #expect(throws: KithError.self) {
      try await run.write(entries(3)) { _ in [KithError(.diskFull, "full"), nil, nil] }
    }
    #expect(run.imported.isEmpty && run.refused.isEmpty)
  }

  @Test func `a dry run refuses what the store would`() async throws {
    var deep: PropertyListValue = 1
    for _ in 0..<65 { deep = [deep] }
    let many =
      entries(6) + [
        .init(key: String(repeating: "k", count: 65), value: 1), .init(key: "", value: 1),
        .init(key: "deep", value: deep),
        .init(key: "large", value: .string(String(repeating: "x", count: 1 << 20))),
        .init(key: "half", value: .string(String(repeating: "x", count: 600_000))),
        .init(key: "other half", value: .string(String(repeating: "x", count: 600_000))),
      ]
    var run = ImportRun()
    var trial = TrialStore()
    try await run.write(many) { chunk in trial.write(each: chunk.map { [($0.key, $0.value)] }) }
    #expect(run.imported == (0..<6).map { "k\($0)" } + ["half"])
    #expect(
      run.refused.map(\.code) == [
        "invalidKey", "invalidKey", "unsupportedValue", "valueTooLarge", "quotaExceeded",
      ])
    try trial.write([
      ("half", nil), ("other half", .string(String(repeating: "x", count: 600_000))),
    ])
  }

  /// A full store takes a millisecond to refuse a key: 200,000 of them took minutes.
  @Test func `the store is not asked about keys that do not fit`() async throws {
    var run = ImportRun()
    var asked = 0
    try await run.write(entries(5_000), trial: TrialStore()) { chunk in
      asked += chunk.count
      return chunk.map { _ in nil }
    }
    #expect(asked == 1_024 && run.imported.count == 1_024 && run.refused.count == 5_000 - 1_024)
    #expect(run.refused.allSatisfy { $0.code == "quotaExceeded" })
    #expect(run.refused.first?.key == "k1024")
  }

  @Test func `a store with hidden writes decides itself`() async throws {
    var run = ImportRun()
    var asked = 0
    try await run.write(entries(2_000), trial: TrialStore()) { chunk in
      asked += chunk.count
      return chunk.map { entry in
        entry.key.count == 2 ? KithError(.quotaExceeded, "full", key: .init(entry.key)) : nil
      }
    }
    #expect(asked == 2_000 && run.refused.count == 10 && run.imported.count == 1_990)
  }

  @Test func `the summary names what was refused`() {
    let summary = ImportSummary(
      file: "a.json", format: .json, imported: 2,
      refused: [.init(key: "key", code: "notAValue", reason: "too long")], isDryRun: false,
      seconds: 0.0123)
    #expect(
      summary.text(.plain) == """
        2 keys imported from a.json (json) in 12.30 ms
        1 key refused:
         key  too long
        """)
    let long = String(repeating: "org.gnome.desktop.", count: 5) + "key"
    var other = summary
    other.refused[0].code = "invalidKey"
    other.refused[0].key = long
    #expect(
      other.text(.plain).hasSuffix(
        """
         \(long)  too long
        1 key would fit in a new store for longer keys: --store NAME --key-bytes 93
        """))
    // No store takes these.
    for key in ["", String(repeating: "k", count: 1_025)] {
      other.refused[0].key = key
      #expect(!other.text(.plain).contains("--key-bytes"))
    }
    #expect(
      summary.document.text(indented: false)
        == #"{"dryRun":false,"file":"a.json","format":"json","imported":2,"#
        + #""refused":[{"code":"notAValue","key":"key","reason":"too long"}],"#
        + #""seconds":0.0123,"version":1}"#)
  }
}
