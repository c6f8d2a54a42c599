#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

  /// Converts for the typed getters. A subclass may return any object, so it is first converted as
  /// if a program had set it.
  enum Conversion {
    static func string(_ object: Any?) -> String? {
      switch value(object) {
      case .string(let text): text
      case .bool(let value): value ? "1" : "0"
      case .integer(let value): String(value)
      case .double(let value): text(value)
      case .date, .data, .array, .dictionary, nil: nil
      }
    }

    /// A number is true unless it is 0; a string follows `NSString.boolValue`.
    static func bool(_ object: Any?) -> Bool {
      switch value(object) {
      case .bool(let value): value
      case .integer(let value): value != 0
      case .double(let value): value != 0
      case .string(let text): NSString(string: text).boolValue
      case .date, .data, .array, .dictionary, nil: false
      }
    }

    static func integer(_ object: Any?) -> Int64 {
      switch value(object) {
      case .bool(let value): value ? 1 : 0
      case .integer(let value): value
      // `NSNumber.int64Value` clamps on Apple's systems only.
      case .double(let value): clamped(value)
      case .string(let text): NSString(string: text).longLongValue
      case .date, .data, .array, .dictionary, nil: 0
      }
    }

    static func double(_ object: Any?) -> Double {
      switch value(object) {
      case .bool(let value): value ? 1 : 0
      case .integer(let value): Double(value)
      case .double(let value): value
      case .string(let text): NSString(string: text).doubleValue
      case .date, .data, .array, .dictionary, nil: 0
      }
    }

    private static func value(_ object: Any?) -> PropertyListValue? {
      guard let object else { return nil }
      return try? PropertyListValue(foundationObject: object)
    }

    /// The nearest integer towards zero; 0 for NaN.
    private static func clamped(_ value: Double) -> Int64 {
      if value.isNaN { return 0 }
      // 2^63 itself is too large. Doubles below it are integers that fit.
      if value >= 0x1p63 { return .max }
      if value <= -0x1p63 { return .min }
      return Int64(value)
    }

    /// The shortest text. A whole number has no fraction, as in `NSNumber.stringValue` on Apple's
    /// systems.
    private static func text(_ value: Double) -> String {
      let text = value.description
      return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
  }

  extension PropertyListValue {
    /// Numbers and bools are `NSNumber`, also nested, so that `as? Bool`, `as? Int`, `as? Int64`
    /// and `as? Double` all work.
    var foundationObject: Any {
      switch self {
      case .bool(let value): NSNumber(value: value)
      case .integer(let value): NSNumber(value: value)
      case .double(let value): NSNumber(value: value)
      case .string(let value): value
      case .date(let value): value
      case .data(let value): value
      case .array(let values): values.map(\.foundationObject)
      case .dictionary(let members): members.mapValues(\.foundationObject)
      }
    }

    init(foundationObject object: Any, depth: Int = 0) throws(UnsupportedValue) {
      // NSNumber, NSDecimalNumber, and Swift's numbers and bools, which bridge.
      if let number = object as? NSNumber {
        self = try Self(number)
      } else if let string = object as? String {
        self = .string(string)
      } else if let data = object as? Data {
        self = .data(data)
      } else if let date = object as? Date {
        self = .date(date)
      } else if let elements = Self.elements(of: object) {
        // Limits the recursion.
        guard depth < Self.maximumDepth else { throw UnsupportedValue(reason: .depth) }
        var values: [Self] = []
        values.reserveCapacity(elements.count)
        for element in elements {
          values.append(try Self(foundationObject: element, depth: depth + 1))
        }
        self = .array(values)
      } else if let elements = Self.members(of: object) {
        guard depth < Self.maximumDepth else { throw UnsupportedValue(reason: .depth) }
        var members: [String: Self] = [:]
        members.reserveCapacity(elements.count)
        for (key, element) in elements {
          members[key] = try Self(foundationObject: element, depth: depth + 1)
        }
        // Foundation's dictionary may have had two keys that Swift calls equal.
        guard members.count == elements.count else {
          throw UnsupportedValue(reason: .equivalentKeys)
        }
        self = .dictionary(members)
      } else if let number = object as? any BinaryFloatingPoint {
        self = .double(Double(number))
      } else {
        throw UnsupportedValue(reason: .type("\(type(of: object))"))
      }
    }

    /// The elements of an array; nil: the object is none. `NSArray` bridges an element when it is
    /// read, and a bridged dictionary has lost one of two equivalent keys. Its mirror shows the
    /// objects themselves.
    private static func elements(of object: Any) -> [Any]? {
      guard type(of: object) == NSArray.self || type(of: object) == NSMutableArray.self,
        let array = object as? NSArray
      else { return object as? [Any] }
      let elements = array.customMirror.children.map(\.value)
      return elements.count == array.count ? elements : object as? [Any]
    }

    /// The members of a dictionary, those of Foundation's unbridged; nil: the object is none, or has
    /// a key that is no text.
    private static func members(of object: Any) -> [(key: String, value: Any)]? {
      guard type(of: object) is NSDictionary.Type, let dictionary = object as? NSDictionary else {
        return (object as? [String: Any]).map { Array($0) }
      }
      var members: [(key: String, value: Any)] = []
      for (key, value) in zip(dictionary.allKeys, dictionary.allValues) {
        guard let key = key as? String else { return nil }
        members.append((key, value))
      }
      return members
    }

    private init(_ number: NSNumber) throws(UnsupportedValue) {
      // Foundation has one object each for true and false. The type is not enough: an `Int8` beyond
      // -1...12 has the type of a C character, as a bool has.
      switch UInt8(truncatingIfNeeded: number.objCType.pointee) {
      case _ where number === NSNumber(value: true): self = .bool(true)
      case _ where number === NSNumber(value: false): self = .bool(false)
      case UInt8(ascii: "d"), UInt8(ascii: "f"): self = .double(number.doubleValue)
      case UInt8(ascii: "Q"):
        guard let value = Int64(exactly: number.uint64Value) else {
          throw UnsupportedValue(reason: .range)
        }
        self = .integer(value)
      default: self = .integer(number.int64Value)
      }
    }
  }

  /// It never holds the value.
  struct UnsupportedValue: Error, Equatable, CustomStringConvertible {
    enum Reason: Equatable {
      case type(String)
      case range
      case depth
      case equivalentKeys
    }

    var reason: Reason

    var description: String {
      switch reason {
      case .type(let name): "property lists hold no \(name)"
      case .range: "the integer is above \(Int64.max)"
      case .depth: "more than \(PropertyListValue.maximumDepth) containers lie within each other"
      case .equivalentKeys: "a dictionary holds only one of two canonically equivalent keys"
      }
    }
  }

  extension [KeyValueStore.Key: PropertyListValue] {
    /// All values for a program. If Swift treats two keys with different bytes as equal, the last
    /// in order of bytes is returned.
    var foundationDictionary: [String: Any] {
      var result: [String: Any] = [:]
      result.reserveCapacity(count)
      for (key, value) in self { result[key.text] = value.foundationObject }
      guard result.count < count else { return result }
      for key in keys.sorted() { result[key.text] = self[key]?.foundationObject }
      return result
    }
  }
#endif
