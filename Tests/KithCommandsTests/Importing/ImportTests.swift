import Foundation
import KithCore
import Testing

@testable import KithCommands

@Suite("Importing settings files")
struct ImportTests {
  /// A file of the repository, by its path.
  private func file(_ path: String) throws -> ImportedFile {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    return try ImportedFile(Data(contentsOf: root.appending(path: path)))
  }

  private func samples(_ name: String) -> String { "Tests/KithCommandsTests/Samples/" + name }

  private func value(_ key: String, in file: ImportedFile) -> PropertyListValue? {
    file.entries.first { $0.key == key }?.value
  }

  private func read(_ text: String) throws -> ImportedFile {
    try ImportedFile(Data(text.utf8))
  }

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

  @Test func `the same property list in XML and binary`() throws {
    let player = try file("Examples/Settings/player.plist")
    let binary = try file(samples("player-binary.plist"))
    #expect(player.format == .plist && player.entries == binary.entries)
    #expect(player.skipped.isEmpty && player.entries.count >= 35)
    #expect(value("Muted", in: player) == false)
    #expect(value("ReplayGainPreampDecibels", in: player) == -3.0)
    #expect(value("AccentColour", in: player) == .data(Data([0x1F, 0x6F, 0xEB])))
    let scan = Date(timeIntervalSinceReferenceDate: 816_902_045)
    #expect(value("LastScan", in: player) == .date(scan))
  }

  @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func `what Foundation writes is read as it was`(
    format: PropertyListSerialization.PropertyListFormat
  ) throws {
    let numbers = (Int8.min...Int8.max).map { NSNumber(value: $0) }
    let texts = ["", "a&<é>🧭", " x\ny\t", "ä\u{308}"]
    let list: [String: Any] = [
      "numbers": numbers, "bools": [NSNumber(value: true), NSNumber(value: false)],
      "wide": [Int64.min, Int64.max, 65_536, 4_294_967_296].map { NSNumber(value: $0) },
      "doubles": [0.1, -0.5, 1e300, .infinity].map { NSNumber(value: $0 as Double) },
      "texts": texts, "data": [Data(), Data(0...255)],
      "date": Date(timeIntervalSinceReferenceDate: -1),
      "é": ["nested": [[String]](repeating: ["x"], count: 20)],
    ]
    let data = try PropertyListSerialization.data(
      fromPropertyList: list, format: format, options: 0)
    let file = try ImportedFile(data)
    #expect(file.skipped.isEmpty && file.entries.count == list.count)
    let integers = (Int8.min...Int8.max).map { PropertyListValue.integer(Int64($0)) }
    #expect(value("numbers", in: file) == .array(integers))
    #expect(value("bools", in: file) == [true, false])
    #expect(value("wide", in: file) == [.integer(.min), .integer(.max), 65_536, 4_294_967_296])
    #expect(value("doubles", in: file) == [0.1, -0.5, 1e300, .double(.infinity)])
    #expect(value("texts", in: file) == .array(texts.map { .string($0) }))
    #expect(value("data", in: file) == [.data(Data()), .data(Data(0...255))])
    #expect(value("date", in: file) == .date(Date(timeIntervalSinceReferenceDate: -1)))
  }

  @Test func `property-list objects that are no values`() throws {
    let odd = try file(samples("odd-objects.plist"))
    #expect(odd.skipped.map(\.key) == ["huge", "key"])
    #expect(odd.skipped.last?.reason.contains("UID") == true)
    #expect(value("numbers", in: odd) == [1, 1.0, true])
    #expect(value("ends", in: odd) == [.integer(.min), .integer(.max)])
    #expect(throws: ImportError.self) { try file(samples("array.plist")) }
  }

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
    #expect(file.forms[Key("d")] == .string(GVariantText.usualType(value)))
  }

  @Test func `keys that dconf cannot have are left out, by name`() {
    let keys = ["", "/a", "a/", "a//b", "a=b", "a\nb", "#a", "[a", " a"]
    let entries = (keys + ["ok"]).map { (key: $0, value: PropertyListValue.integer(1)) }
    let document = DconfDocument(entries: entries, forms: [:])
    #expect(document.text == "[/]\nok=1" && document.skipped == keys)
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
      #expect(error?.description.contains("UTF-16") == true)
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
  ])
  func `an INI file is no dump of dconf`(text: String) {
    let error = #expect(throws: ImportError.self) { try read(text) }
    #expect(error?.description.contains("INI file") == true)
  }

  @Test func `a dump with a damaged value is read if a person says that it is one`() throws {
    let text = "[a]\nb=1\nc=tru\nd=uint64 18446744073709551615"
    #expect(throws: ImportError.self) { try read(text) }
    let file = try ImportedFile(Data(text.utf8), as: .dconf)
    #expect(file.entries == [.init(key: "a/b", value: 1)])
    #expect(file.skipped.map(\.key) == ["a/c", "a/d"])
    // No value holds it, but the text is a dump's.
    #expect(try read("[a]\nb=1\nd=uint64 18446744073709551615").skipped.map(\.key) == ["a/d"])
  }

  @Test(arguments: [
    #"{"k": {"$date": 1439514154000}}"#, #"{"k": [{"$date": 5}]}"#,
    #"{"k": {"$date": {"$numberLong": "1439514154000"}}}"#,
  ])
  func `a date as a whole number is refused, as programs differ in what it counts`(
    text: String
  ) throws {
    let file = try read(text)
    #expect(file.entries.isEmpty && file.skipped.map(\.key) == ["k"])
  }
}

@Suite("XML property lists")
struct XMLPropertyListTests {
  private func read(_ value: String) throws -> ImportedFile {
    try ImportedFile(Data("<plist><dict><key>k</key>\(value)</dict></plist>".utf8))
  }

  @Test(
    arguments: [
      ("<string>a &amp; b&#233;<![CDATA[<x>&amp;]]> </string>", "a & bé<x>&amp; "),
      ("<string/>", ""),
      ("<string>a\r\nb<!-- no -->c&#13;</string>", "a\nbc\r"), ("<true/>", true),
      ("<false></false>", false), ("<integer> -5 </integer>", -5), ("<integer>0x1F</integer>", 31),
      ("<real>1e3</real>", 1000.0), ("<real>+infinity</real>", .double(.infinity)),
      ("<data> AA\n E= </data>", .data(Data([0, 1]))), ("<array><dict/></array>", [[:]]),
      ("<date>2001-01-01T00:00:01Z</date>", .date(Date(timeIntervalSinceReferenceDate: 1))),
      ("<dict ><key>CF$UID</key ><integer>1</integer></dict>", ["CF$UID": 1]),
    ] as [(String, PropertyListValue)])
  func read(text: String, value: PropertyListValue) throws {
    #expect(try read(text).entries == [.init(key: "k", value: value)])
  }

  @Test(arguments: [
    "<data>AAE</data>", "<data>AA*EC</data>", "<real>1e999</real>", "<real>0x1p3</real>", "<real/>",
    "<integer>9223372036854775808</integer>", "<integer>1.0</integer>", "<integer></integer>",
    "<date>yesterday</date>", "<date/>", "<string>&#xD83D;</string>", "<string>&#0;</string>",
    "<string>&nbsp;</string>", "<array><integer>x</integer></array>",
  ])
  func `a damaged value is refused, and the others are taken`(text: String) throws {
    let file = try read(text + "<key>other</key><integer>1</integer>")
    #expect(file.entries == [.init(key: "other", value: 1)])
    #expect(file.skipped.map(\.key) == ["k"])
  }

  @Test(arguments: [
    "", "<plist>", "<plist/>", "<plist></plist>", "<plist><dict>",
    "<plist><dict><key>a</key></dict></plist>",
    "<plist><dict><true/></dict></plist>", "<plist><dict></array></plist>",
    "<plist><dict/><dict/></plist>", "<plist><dict/></plist><plist><dict/></plist>",
    "<plist><dict/></plist>x", "<plist><dict>x</dict></plist>", "<plist><foo/></plist>",
    "<plist><dict><key>a</key><string>x</strin></dict></plist>", "<plist a=\"1", "<plist a",
    "<plist><dict><key>a</key><string>x & y</string></dict></plist>", "<dict/>x", "<!-- a", "<?xml",
    "<!DOCTYPE plist [<!ENTITY a \"b\">]><plist><dict/></plist>",
    "<plist><dict><key>&#0;</key><true/></dict></plist>",
    String(repeating: "<array>", count: 100_000),
  ])
  func `a damaged file is refused`(text: String) {
    #expect(throws: ImportError.self) { try ImportedFile(Data(text.utf8), as: .plist) }
  }

  @Test func `bytes that are no UTF-8 are refused`() {
    let bytes =
      Data("<plist><dict><key>a</key><string>".utf8) + [0xE9]
      + Data("</string></dict></plist>".utf8)
    #expect(throws: ImportError.self) { try ImportedFile(bytes) }
  }
}

@Suite("Binary property lists")
struct BinaryPropertyListTests {
  /// A list `{k: a}` with an array `a` of so many of the next array, and so on; the last holds an
  /// object of its own.
  private func nested(_ levels: Int, width: Int, last: [UInt8] = [0x10, 1]) -> Data {
    var objects: [[UInt8]] = [[0xD1, 1, 2], [0x51, UInt8(ascii: "k")]]
    for level in 0..<levels {
      objects.append(
        [0xA0 | UInt8(width)] + Array(repeating: UInt8(objects.count + 1), count: width))
      precondition(level < 200)
    }
    return list(objects + [last])
  }

  /// The file of objects, the first of which is the root.
  private func list(_ objects: [[UInt8]]) -> Data {
    var data = Data("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets += [UInt8(data.count >> 16), UInt8(data.count >> 8 & 0xFF), UInt8(data.count & 0xFF)]
      data += object
    }
    func number(_ number: Int) -> [UInt8] {
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
    let table = data.count
    data += offsets + [0, 0, 0, 0, 0, 0, 3, 1]
    data += number(objects.count) + number(0) + number(table)
    return data
  }

  @Test func `shared arrays are taken as long as they are few`() throws {
    let file = try ImportedFile(nested(3, width: 2))
    #expect(file.entries == [.init(key: "k", value: [[[1, 1], [1, 1]], [[1, 1], [1, 1]]])])
  }

  @Test(arguments: [[0xC1, 1], [0xA1, 2]] as [[UInt8]])
  func `a set in a property list is refused`(value: [UInt8]) throws {
    // `{k: {"k"}}`, and the same inside an array. Foundation crashes when it makes one.
    let objects: [[UInt8]] = [[0xD1, 1, 3], [0x51, UInt8(ascii: "k")], [0xC1, 1], value]
    let file = try ImportedFile(list(objects))
    #expect(file.entries.isEmpty && file.skipped.count == 1)
    #expect(file.skipped.first?.reason.contains("a set") == true)
  }

  @Test(
    arguments: [
      [0x51, 0xE9], [0x61, 0xD8, 0x3D], [0x80, 1], [0x00],
      [0x14] + [UInt8](repeating: 0, count: 8)
        + [0xFF] + [UInt8](repeating: 0, count: 7),
    ] as [[UInt8]])
  func `a damaged object is refused, and the others are taken`(value: [UInt8]) throws {
    let objects: [[UInt8]] = [
      [0xD2, 1, 2, 3, 4], [0x51, 0x6B], [0x51, 0x6C], value, [0x62, 0xD8, 0x3D, 0xDE, 0x00],
    ]
    let file = try ImportedFile(list(objects))
    #expect(file.entries == [.init(key: "l", value: "😀")])
    #expect(file.skipped.map(\.key) == ["k"])
  }

  @Test func `a key twice, and equivalent ones`() throws {
    let keys: [[UInt8]] = [[0x51, 0x6B], [0x61, 0, 0xE9], [0x62, 0, 0x65, 3, 1], [0x51, 0x6B]]
    let file = try ImportedFile(
      list([[0xD4, 1, 2, 3, 4, 5, 5, 5, 5]] + keys + [[0x10, 1]]))
    #expect(file.entries.map { Array($0.key.utf8) } == [[0x65, 0xCC, 0x81], [0xC3, 0xA9]])
    #expect(file.skipped.map(\.key) == ["k"])
  }

  @Test func `a list that unfolds to more than memory holds is refused at once`() {
    let text = [0x5F, 0x11, 0xFF, 0xFF] + [UInt8](repeating: 0x61, count: 65_535)
    for data in [nested(20, width: 14), nested(3, width: 14, last: text)] {
      let error = #expect(throws: ImportError.self) { try ImportedFile(data) }
      #expect(error?.description.contains("unfolds") == true)
      #expect(throws: ImportError.self) { try PropertyListReader.value(data) }
    }
  }

  @Test func `a list that holds itself ends`() {
    #expect(throws: ImportError.self) {
      try ImportedFile(list([[0xD1, 1, 2], [0x51, 0x6B], [0xA1, 2]]))
    }
  }

  @Test func `depth is the store's to judge`() throws {
    let deep = try ImportedFile(nested(100, width: 1))
    #expect(deep.entries.count == 1)
  }

  @Test func `any damage is said, and nothing is read outside the file`() {
    let whole = nested(3, width: 2)
    for length in 6..<whole.count {
      let error = #expect(throws: ImportError.self) { try ImportedFile(whole[..<length]) }
      #expect(error?.description.contains("damaged") == true)
    }
    for place in whole.indices.dropFirst(8) {
      for byte in [0, 0x0F, 0xAF, 0xDF, 0xFF] as [UInt8] {
        var broken = whole
        broken[place] = byte
        _ = try? ImportedFile(broken)
      }
    }
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
    String(repeating: "[", count: 100_000), String(repeating: "just ", count: 100_000),
  ])
  func refuse(text: String) {
    var reader = GVariantReader(text)
    #expect(throws: ImportError.self) { try reader.read() }
  }
}
