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

  @Test func `every Int8 is a number, and only bools are bools`() throws {
    for number in Int8.min...Int8.max {
      let expected = PropertyListValue.integer(Int64(number))
      #expect(try PropertyListReader.value(number) == expected)
      let nested: [String: Any] = ["list": [NSNumber(value: number), true, NSNumber(value: false)]]
      #expect(try PropertyListReader.value(nested) == ["list": [expected, true, false]])
    }
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

  /// The store after an import of the file.
  private func store(_ file: ImportedFile) throws -> [(key: String, value: PropertyListValue)] {
    let texts = try #require(
      DconfDocument.texts(nil, after: file.entries.map(\.key), with: file.texts))
    var entries = file.entries.map { (key: $0.key, value: $0.value) }
    entries.append((key: DconfDocument.textsKey, value: texts))
    return entries
  }

  private func lines(_ text: String) -> [Substring] { text.split(separator: "\n").sorted() }

  @Test func `a desktop's settings come back as they were`() throws {
    let desktop = try file("Examples/Settings/desktop.dconf")
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    let path = root.appending(path: "Examples/Settings/desktop.dconf")
    let document = DconfDocument(entries: try store(desktop))
    #expect(document.skipped.isEmpty)
    #expect(lines(document.text) == lines(try String(contentsOf: path, encoding: .utf8)))
  }

  @Test func `a changed value keeps the type of an integer, and no text of another value`() throws {
    let dump = try read(
      "[a]\nbyte=byte 0x05\nlist=@as []\nn=uint32 5\nsame=uint32 5\nwide=uint32 5")
    var entries = try store(dump)
    let new: [String: PropertyListValue] = ["byte": 6, "list": ["x"], "n": -1, "wide": 7]
    for (name, value) in new {
      let index = try #require(entries.firstIndex { $0.key == "a/" + name })
      entries[index].value = value
    }
    #expect(
      DconfDocument(entries: entries).text
        == "[a]\nbyte=byte 6\nlist=['x']\nn=-1\nsame=uint32 5\nwide=uint32 7")
    // A text that another device wrote is one line, or does not count.
    entries = [("k", "a\n[b]\nc=1"), (DconfDocument.textsKey, ["k": "'a\n[b]\nc=1'"])]
    #expect(DconfDocument(entries: entries).text == "[/]\nk='a\\n[b]\\nc=1'")
  }

  @Test(
    arguments: [
      true, 5, .integer(.min), -0.5, 1e300, "it's \"\\\n\u{1}\u{85}é", .data(Data([0, 255])),
      .data(Data()), [], [1, 5_000_000_000], [1, "x", [1.0, 2.0]], [[], ["x"]], [:],
      ["a": 1, "b'": 2],
      ["a": 1, "b": [true, ["c": .data(Data([7]))]]],
    ] as [PropertyListValue])
  func `every value but a date is read back from its text`(value: PropertyListValue) throws {
    let text = DconfDocument(entries: [("a/b/c", value), ("d", value)]).text
    let file = try read(text)
    #expect(file.entries == [.init(key: "d", value: value), .init(key: "a/b/c", value: value)])
    #expect(file.texts.isEmpty)
  }

  @Test func `keys that dconf cannot have are left out, by name`() {
    let keys = ["", "/a", "a/", "a//b", "a=b", "a\nb", "#a", "[a", " a"]
    let entries = (keys + ["ok"]).map { (key: $0, value: PropertyListValue.integer(1)) }
    let document = DconfDocument(entries: entries)
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

  @Test func `a dconf key given twice is reported`() throws {
    let twice = try read("[a]\r\nb=1\r\nb=2\r\nc=uint64 18446744073709551615\r\n")
    #expect(twice.entries == [.init(key: "a/b", value: 1)])
    #expect(twice.skipped.map(\.key) == ["a/b", "a/c"])
    #expect(twice.skipped[0].reason == "line 3: the key was already given in line 2")
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
  func `a set in a property list ended the import`(value: [UInt8]) {
    // `{k: {"k"}}`, and the same inside an array. Found by the fuzzer.
    let objects: [[UInt8]] = [[0xD1, 1, 3], [0x51, UInt8(ascii: "k")], [0xC1, 1], value]
    let error = #expect(throws: ImportError.self) { try ImportedFile(list(objects)) }
    #expect(error?.description.contains("a set") == true)
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
      ("just 5", 5), ("@ms 'x'", "x"), (#"b'a\001\\'"#, .data(Data([0x61, 1, 0x5C]))),
      ("[byte 0x01, 0xff]", .data(Data([1, 255]))), ("@ay []", .data(Data())),
    ] as [(String, PropertyListValue)])
  func read(text: String, value: PropertyListValue) throws {
    var reader = GVariantReader(text)
    #expect(try reader.read() == value)
  }

  @Test(arguments: [
    "", "nothing", "@ms nothing", "tru", "'open", "[1", "[1 2]", "{'a' 1}", "<1", "1 2", "0x", "09",
    "99999999999999999999", "{'a': 1, 'a': 2}", #"'\ud800'"#, "b", "@", "[byte 256]", "--1",
    String(repeating: "[", count: 100_000), String(repeating: "just ", count: 100_000),
  ])
  func refuse(text: String) {
    var reader = GVariantReader(text)
    #expect(throws: ImportError.self) { try reader.read() }
  }
}
