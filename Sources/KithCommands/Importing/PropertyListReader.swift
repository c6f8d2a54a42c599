import FoundationEssentials
import KithCore

/// A property list as its file has it: nothing is dropped, replaced or rounded.
indirect enum PropertyListNode {
  case value(PropertyListValue)
  /// Damaged, or without a counterpart among values; for people, such as "`AAE` is not base64".
  case invalid(String)
  case array([PropertyListNode])
  /// In the order of the file. A key may occur twice.
  case dictionary([(key: String, node: PropertyListNode)])

  func value() throws(NotAValue) -> PropertyListValue {
    switch self {
    case .value(let value): return value
    case .invalid(let reason): throw NotAValue(reason)
    case .array(let nodes):
      var values: [PropertyListValue] = []
      for (index, node) in nodes.enumerated() {
        do throws(NotAValue) { values.append(try node.value()) } catch {
          throw error.inside("[\(index)]")
        }
      }
      return .array(values)
    case .dictionary(let members):
      return .dictionary(try .distinct(members) { node throws(NotAValue) in try node.value() })
    }
  }

  /// With its article.
  var kindName: String {
    switch self {
    case .value(.bool): "a bool"
    case .value(.integer), .value(.double): "a number"
    case .value(.date): "a date"
    case .value(.data): "data"
    case .value(.string): "a string"
    case .value(.array), .array: "an array"
    case .value(.dictionary), .dictionary: "a dictionary"
    case .invalid(let reason): "no value: \(reason)"
    }
  }
}

enum PropertyListReader {
  /// Nested containers. A store's own limit is lower.
  static let maximumDepth = 512

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
    var reader = try BinaryPropertyListReader(data)
    return try reader.read()
  }
}

extension ImportedFile {
  /// Takes one key for each member of the dictionary.
  mutating func takePropertyList(_ data: Data) throws(ImportError) {
    let root: PropertyListNode
    do throws(ImportError) {
      root = try PropertyListReader.node(data)
    } catch {
      throw ImportError("the file is not a valid property list: \(error)")
    }
    guard case .dictionary(let members) = root else {
      throw ImportError(
        "the top level of the property list is \(root.kindName) where a dictionary is needed")
    }
    for (key, node) in members.sorted(by: { Key($0.key) < Key($1.key) }) {
      add(key) { try node.value() }
    }
  }
}
