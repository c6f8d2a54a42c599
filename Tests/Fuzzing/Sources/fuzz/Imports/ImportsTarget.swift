import Foundation

@testable import KithCommands
@testable import KithCore
@testable import KithValues

extension FuzzTarget {
  /// Files of settings, exports, and values as people type them.
  ///
  /// The first byte selects how the rest is read. 0 to 3: a file whose format is detected or given.
  /// From 4 on: a text as one of the kinds of value. Values that were read must be unchanged after
  /// writing them as JSON and after encoding them.
  static let imports = FuzzTarget(name: "imports") { bytes in
    var input = FuzzInput(bytes)
    let kind = input.number(below: 4 + ValueType.allCases.count)
    let rest = input.rest()
    if kind >= 4 {
      guard let text = String(validating: rest, as: UTF8.self),
        let value = try? ValueText.parse(text, as: ValueType.allCases[kind - 4])
      else { return }
      check(value)
      return
    }
    let format: ImportFormat? = kind == 0 ? nil : ImportFormat.allCases[kind - 1]
    guard let file = try? ImportedFile(Data(rest), as: format) else { return }
    var keys = Set<Key>()
    for entry in file.entries {
      require(keys.insert(Key(entry.key)).inserted, "a key twice in one file")
      check(entry.value)
    }
  } seeds: {
    ImportSeeds.all
  }

  private static func check(_ value: PropertyListValue) {
    let text = ValueJSON.text(value)
    // JSON is nested less deeply than a file may be; what it does not take no store does.
    guard let encoded = try? EncodedValue(value) else { return }
    do {
      require(try encoded.decoded() == value, "another value out of its encoding")
      let again = try ValueJSON.value(text)
      require(again == value, "another value out of its JSON: \(text.prefix(200))")
      require(ValueJSON.text(again) == text, "another JSON")
    } catch {
      fatalError("what was written as JSON cannot be read: \(error)")
    }
    _ = ValueText.text(value)
  }
}

/// Inputs of ``FuzzTarget/imports``.
private enum ImportSeeds {
  static var all: [(name: String, bytes: [UInt8])] {
    texts.map { ($0.0, [$0.1] + Array($0.2.utf8)) } + [("binary plist", [0] + binary)]
  }

  private static let texts: [(String, UInt8, String)] = [
    (
      "editor.json", 0,
      """
      // A comment
      { "editor.fontSize": 14, "zoom": -1.5e2, "names": ["a", "\\u00e9\\ud83d\\ude00"],
        "deep": {"a": [true, false, [[]]]}, /* another */ "none": null }
      """
    ),
    (
      "export.json", 1,
      """
      {"format":"kith export","version":1,"store":"com.example.App","values":{"when":\
      {"$date":"2026-11-21T10:00:00.123Z"},"late":{"$date":-1.5e300},"bits":{"$data":"AAEC"},\
      "nan":{"$double":"0x7ff8000000000001"},"inf":{"$double":"-inf"},\
      "tag":{"$dictionary":{"$data":1}}}}
      """
    ),
    (
      "xml.plist", 2,
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "x">
      <plist version="1.0"><dict><key>a</key><integer>1</integer><key>b</key><real>0.5</real>
      <key>c</key><array><true/><false/><string>&lt;x&#233;</string></array>
      <key>d</key><date>2026-11-21T10:00:00Z</date><key>e</key><data>AAEC</data></dict></plist>
      """
    ),
    (
      "desktop.dconf", 3,
      """
      # dconf
      [org/gnome/desktop]
      clock-format='24h'
      size=uint32 14
      scale=1.25
      frames=[(1, 2), (3, 4)]
      map={'a': <1>, 'b': <'x'>, 'c': <@as []>}
      bytes=b'ab\\001'
      list=[byte 0x01, 0x02]
      maybe=just true
      [/]
      top=-017
      """
    ),
    ("auto", 4, "[1, {\"a\": 2.5e3}]"), ("date", 9, "2026-11-21T10:00:00.123+01:00"),
    ("hexadecimal", 10, "0x000102"), ("double", 7, "-inf"),
  ]

  /// A dictionary of one key as Foundation writes it: `{"a": [1, "é", true]}`.
  private static var binary: [UInt8] {
    let list: [String: Any] = ["a": [1, "\u{e9}", true, Data([1, 2]), 0.5]]
    let data = try? PropertyListSerialization.data(
      fromPropertyList: list, format: .binary, options: 0)
    return Array(data ?? Data())
  }
}
