import KithCore

/// Recognises documents of `kith export --json`, which contain the values as a member.
enum ExportImporter {
  /// Returns the members with keys and values: of a document of `kith export --json` those of its
  /// `values`, otherwise the object's own.
  ///
  /// - Throws: ``ImportError`` if the document has an unknown version.
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
