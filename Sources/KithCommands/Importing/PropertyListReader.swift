import FoundationEssentials
import KithCore
import KithValues

enum PropertyListReader {
  static func value(_ data: Data) throws -> PropertyListValue {
    try node(ImportFormat.utf8(data)).value()
  }

  /// Throws if the file as a whole cannot be read. A value in it that is damaged becomes an invalid
  /// node.
  static func node(_ data: Data) throws(ImportError) -> PropertyListNode {
    // Not the older format without markup, in which any word is a string.
    guard (try? ImportFormat.detect(data)) == .plist else {
      throw ImportError("it begins neither as XML nor as a binary property list")
    }
    guard data.starts(with: Array("bplist".utf8)) else {
      var reader = XMLPropertyListReader(Array(data))
      return try reader.read()
    }
    do throws(PropertyListError) {
      var reader = try BinaryPropertyListReader(data)
      return try reader.read()
    } catch {
      throw ImportError(error.description)
    }
  }
}

extension ImportedFile {
  /// Takes one key for each member of the dictionary.
  mutating func readPropertyList(_ data: Data) throws(ImportError) {
    let root: PropertyListNode
    do throws(ImportError) {
      root = try PropertyListReader.node(data)
    } catch {
      throw ImportError("the file is not a valid property list: \(error)")
    }
    guard case .dictionary(let members) = root else {
      throw ImportError(
        "the top level of the property list is \(root.kindName), and a dictionary is needed")
    }
    for (key, node) in members.sorted(by: { Key($0.key) < Key($1.key) }) {
      add(key) { try node.value() }
    }
  }
}

extension PropertyListNode {
  /// The kind's name, with its article.
  var kindName: String {
    switch self {
    case .value(.bool): "a bool"
    case .value(.integer), .value(.double): "a number"
    case .value(.date): "a date"
    case .value(.data): "data"
    case .value(.string): "a string"
    case .value(.array), .array: "an array"
    case .value(.dictionary), .dictionary: "a dictionary"
    case .invalid(let reason): "no value (\(reason))"
    }
  }
}
