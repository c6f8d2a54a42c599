import Foundation
import KithCore

extension ImportedFile {
  /// Takes one key for each member of the object.
  mutating func takeJSON(_ data: Data) throws(ImportError) {
    let root: JSONNode
    do throws(JSONSyntaxError) {
      var reader = JSONReader(Array(data), isFile: true)
      root = try reader.read()
    } catch {
      if Self.isOldPropertyList(data) { throw .oldPropertyList }
      throw ImportError("the file is not valid JSON: \(error)")
    }
    guard case .object(var members) = root else {
      throw ImportError(
        "line 1: the file holds \(root.kindName) where an object with one member a key is needed: "
          + "{\"key\": value, …}")
    }
    // `kith export` uses this form for a store whose only key looks like a tag.
    if members.count == 1, members[0].key == ValueJSON.Tag.dictionary.rawValue,
      case .object(let inner) = members[0].value
    {
      members = inner
    }
    for member in try Self.values(of: members) {
      add(member.key) { try ValueJSON.value(member.value) }
    }
  }

  /// Returns the `values` of a document of `kith export --json`; otherwise the object's own
  /// members. Throws if the document has an unknown version.
  private static func values(of members: [JSONMember]) throws(ImportError) -> [JSONMember] {
    func member(_ key: String) -> JSONNode? { members.first { $0.key == key }?.value }
    guard member("format") == .string(ExportDocument.format), members.count == 4,
      case .object(let values)? = member("values"), member("store") != nil
    else { return members }
    guard member("version") == .number("\(Document.version)") else {
      throw ImportError("this export was written by a newer version of kith; update kith first")
    }
    return values
  }
}

extension ImportedFile {
  /// Whether a text has assignments, as `defaults read` prints.
  private static func isOldPropertyList(_ data: Data) -> Bool {
    let text = String(decoding: data.prefix(4_096), as: UTF8.self)
    return text.contains(#/[{;(]\s*("[^"]*"|[\w.$\/-]+)\s*=[^=]/#)
  }
}

extension ImportError {
  static let oldPropertyList = ImportError(
    "this is the old text form of a property list, which `defaults read` prints; convert it with "
      + "`plutil -convert xml1`, or save it with `defaults export`")
}

extension JSONNode {
  /// With its article.
  fileprivate var kindName: String {
    switch self {
    case .null: "null"
    case .bool: "a bool"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
