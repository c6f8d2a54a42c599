import Foundation
import KithCore

extension ImportedFile {
  /// Takes one key for each member of the dictionary.
  mutating func takePropertyList(_ data: Data) throws(ImportError) {
    let root: Any
    do {
      root = try PropertyListReader.object(data)
    } catch {
      throw ImportError("the file is not a valid property list: \(error)")
    }
    guard let members = root as? [String: Any] else {
      throw ImportError(
        "the top level of the property list is \(PropertyListReader.kindName(root)) where a "
          + "dictionary is needed")
    }
    for (key, object) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
    {
      add(key) { try PropertyListReader.value(object) }
    }
  }
}

enum PropertyListReader {
  static func value(_ data: Data) throws -> PropertyListValue {
    try value(try object(data))
  }

  static func object(_ data: Data) throws(ImportError) -> Any {
    // Foundation would also read the older format without markup, in which any word is a string.
    guard (try? ImportFormat.detect(data)) == .plist else {
      throw ImportError("it begins neither as XML nor as a binary property list")
    }
    try BinaryPropertyListBounds.check(data)
    do {
      return try PropertyListSerialization.propertyList(from: data, options: [], format: nil)
    } catch {
      let cocoa = error as NSError
      let detail = cocoa.userInfo["NSDebugDescription"] as? String
      throw ImportError(detail ?? cocoa.localizedDescription)
    }
  }

  static func value(_ object: Any) throws(ImportError) -> PropertyListValue {
    // No `as? Bool`: it would also accept the number 1.
    switch object {
    case let string as String: return .string(string)
    case let date as Date: return .date(date)
    case let data as Data: return .data(data)
    case let number as NSNumber: return try value(number)
    case let objects as [Any]:
      var values: [PropertyListValue] = []
      for object in objects { values.append(try value(object)) }
      return .array(values)
    case let members as [String: Any]:
      var values: [String: PropertyListValue] = [:]
      for (key, object) in members { values[key] = try value(object) }
      return .dictionary(values)
    default:
      throw ImportError("\(kindName(object)) has no counterpart among a store's values")
    }
  }

  private static func value(_ number: NSNumber) throws(ImportError) -> PropertyListValue {
    // Foundation has one object each for true and false.
    if number === NSNumber(value: true) { return .bool(true) }
    if number === NSNumber(value: false) { return .bool(false) }
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return .double(number.doubleValue)
    case UInt8(ascii: "Q") where number.uint64Value > UInt64(Int64.max):
      throw ImportError("the integer \(number.uint64Value) is larger than \(Int64.max)")
    default: return .integer(number.int64Value)
    }
  }

  /// With its article.
  static func kindName(_ object: Any) -> String {
    switch object {
    case is [Any]: "an array"
    case is [String: Any]: "a dictionary"
    case is String: "a string"
    case is Date: "a date"
    case is Data: "data"
    case is NSNumber: type(of: object) == Bool.self ? "a bool" : "a number"
    default:
      String(describing: type(of: object)).hasSuffix("UID")
        ? "a UID (a reference inside a keyed archive)" : "an object of an unknown kind"
    }
  }
}
