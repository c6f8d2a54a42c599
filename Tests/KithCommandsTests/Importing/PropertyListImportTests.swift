import Foundation
import KithCore
import Testing

@testable import KithCommands

@Suite("Importing property lists")
struct PropertyListImportTests: ImportReading {
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
      ("<string>a<![CDATA[\r\nb\rc\n]]>\r\n&#x41;]]&gt;</string>", "a\nb\nc\n\nA]]>"),
      ("<integer>-0x1f</integer>", -31), ("<integer>+7</integer>", 7), ("<integer>00</integer>", 0),
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
    "<data>AAE</data>", "<data>AA*EC</data>", "<data>====</data>", "<data>AAEC=</data>",
    "<data>AAEC====</data>", "<data>AB==</data>", "<data>AAB=</data>", "<data>A===</data>",
    "<real>1e999</real>", "<real>1e-400</real>", "<real>-0.01e-999</real>", "<real>0x1p3</real>",
    "<real/>",
    "<integer>9223372036854775808</integer>", "<integer>1.0</integer>", "<integer></integer>",
    "<date>yesterday</date>", "<date/>", "<string>&#xD83D;</string>", "<string>&#0;</string>",
    "<string>&nbsp;</string>", "<array><integer>x</integer></array>",
    // Swift's initializers of numbers take a sign.
    "<integer>0x+5</integer>", "<integer>0x-5</integer>", "<integer>-+5</integer>",
    "<integer>--5</integer>", "<string>&#x+41;</string>", "<string>&#+5;</string>",
    "<string>&#x;</string>", "<integer>-0</integer>", "<integer>-0x0</integer>",
    "<real>nan(1)</real>",
    // No characters of XML.
    "<string>a\u{1}b</string>", "<string>&#x1;</string>", "<string><![CDATA[\u{B}]]></string>",
    "<string>\(String(decoding: [0xFFFE], as: UTF16.self))</string>", "<string>a ]]> b</string>",
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

  @Test func `another version is not read as the known one`() {
    var data = list([[0xD1, 1, 2], [0x51, 0x6B], [0x10, 1]])
    data.replaceSubrange(0..<8, with: Data("bplist16".utf8))
    let error = #expect(throws: ImportError.self) { try ImportedFile(data) }
    #expect(error?.description.contains("version") == true)
  }

  @Test func `a root that is no value is named once`() {
    let error = #expect(throws: ImportError.self) {
      try ImportedFile(list([[0xD1, 1, 1], [0x10, 1]]))
    }
    #expect(
      error?.description.contains("is no value (a dictionary has a key that is no string), ")
        == true)
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
