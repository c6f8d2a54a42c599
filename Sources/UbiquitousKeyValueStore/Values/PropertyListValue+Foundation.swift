#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

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
      } else if let elements = object as? [Any] {
        // Limits the recursion.
        guard depth < Self.maximumDepth else { throw UnsupportedValue(reason: .depth) }
        var values: [Self] = []
        values.reserveCapacity(elements.count)
        for element in elements {
          values.append(try Self(foundationObject: element, depth: depth + 1))
        }
        self = .array(values)
      } else if let elements = object as? [String: Any] {
        guard depth < Self.maximumDepth else { throw UnsupportedValue(reason: .depth) }
        // Foundation's dictionary may have had two keys that Swift calls equal.
        guard
          !(type(of: object) is NSDictionary.Type)
            || (object as? NSDictionary)?.count == elements.count
        else { throw UnsupportedValue(reason: .equivalentKeys) }
        var members: [String: Self] = [:]
        members.reserveCapacity(elements.count)
        for (key, element) in elements {
          members[key] = try Self(foundationObject: element, depth: depth + 1)
        }
        self = .dictionary(members)
      } else if let number = object as? any BinaryFloatingPoint {
        self = .double(Double(number))
      } else {
        throw UnsupportedValue(reason: .type("\(type(of: object))"))
      }
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
