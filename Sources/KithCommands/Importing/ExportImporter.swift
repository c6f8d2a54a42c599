import KithCore

enum ExportImporter {
  /// Returns the `values` of a document of `kith export --json`; otherwise the object's own
  /// members. Throws if the document has an unknown version.
  static func values(of members: [JSONMember]) throws(ImportError) -> [JSONMember] {
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
