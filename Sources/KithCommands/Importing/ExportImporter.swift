import KithCore

/// Knows documents of `kith export --json`, whose values stand inside.
enum ExportImporter {
  /// The members that hold keys and values: those of the document's `values` if the object is one
  /// of `kith export --json`, otherwise its own.
  ///
  /// - Throws: ``ImportError`` if it is such a document of a version that is not known here.
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
