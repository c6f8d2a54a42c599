import Foundation

package enum ImportFormat: String, CaseIterable, Sendable {
  /// With or without the comments that editors allow.
  case json
  /// XML or binary.
  case plist
  /// The output of `dconf dump /`.
  case dconf

  /// Detects the format from the content alone.
  static func detect(_ data: Data) throws(ImportError) -> ImportFormat {
    if data.starts(with: Array("bplist".utf8)) { return .plist }
    if data.starts(with: Array("GVariant".utf8)) {
      throw ImportError(
        "this is dconf's binary database; run `dconf dump / > settings.dconf` and import that file")
    }
    var content = data[...]
    if content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
    content = content.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    switch content.first {
    case UInt8(ascii: "<"): return .plist
    case UInt8(ascii: "{"), UInt8(ascii: "/"): return .json
    case UInt8(ascii: "#"), UInt8(ascii: ";"): return .dconf
    case UInt8(ascii: "["): return isSection(content.prefix { $0 != 0x0A }) ? .dconf : .json
    case nil: throw ImportError("the file is empty")
    default:
      throw ImportError(
        "the file is neither a JSON object, nor a property list (XML or binary), nor the text of "
          + "`dconf dump`")
    }
  }

  /// Whether a line is `[org/gnome/desktop]` and not a JSON array.
  private static func isSection(_ line: Data) -> Bool {
    let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.hasSuffix("]") else { return false }
    let name = text.dropFirst().dropLast()
    let isNumber = Double(name) != nil || ["true", "false", "null"].contains(name)
    return !name.isEmpty && !isNumber && !name.contains { "\"[]{},".contains($0) }
  }
}
