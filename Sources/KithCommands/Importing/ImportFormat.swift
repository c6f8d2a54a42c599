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
    case UInt8(ascii: "("): throw .oldPropertyList
    case nil: throw ImportError("the file is empty")
    default:
      throw ImportError(
        "the file is neither a JSON object, nor a property list (XML or binary), nor the text of "
          + "`dconf dump`")
    }
  }

  /// Returns UTF-16 with a byte-order mark in UTF-8, and all else unchanged.
  static func utf8(_ data: Data) throws(ImportError) -> Data {
    let bytes = Array(data)
    if bytes.starts(with: [0xFF, 0xFE, 0, 0]) || bytes.starts(with: [0, 0, 0xFE, 0xFF]) {
      throw ImportError("the encoding is UTF-32; convert it: iconv -f UTF-32 -t UTF-8")
    }
    let isBig = bytes.starts(with: [0xFE, 0xFF])
    guard isBig || bytes.starts(with: [0xFF, 0xFE]) else {
      guard !bytes.prefix(2).contains(0) else {
        throw ImportError(
          "the encoding seems to be UTF-16 without a byte-order mark; convert it: "
            + "iconv -f UTF-16LE -t UTF-8")
      }
      return data
    }
    let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBig ? first << 8 | second : second << 8 | first
    }
    guard bytes.count.isMultiple(of: 2), let text = String(validating: units, as: UTF16.self) else {
      throw ImportError("the text is not valid UTF-16")
    }
    return Data(text.utf8)
  }

  /// Whether a line is `[org/gnome/desktop]` or, in INI files, `[a][b]`, and not a JSON array.
  private static func isSection(_ line: Data) -> Bool {
    let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.hasSuffix("]") else { return false }
    let name = text.dropFirst().dropLast()
    if name.contains("][") { return true }
    let isNumber = Double(name) != nil || ["true", "false", "null"].contains(name)
    return !name.isEmpty && !isNumber && !name.contains { "\"[]{},".contains($0) }
  }
}
