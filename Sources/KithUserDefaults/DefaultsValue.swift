internal import Foundation
internal import Kith

enum DefaultsValue {
  /// Seconds from 2001, some thirty million years. A date that is not finite, or whose year exceeds
  /// 32 bits, makes the whole file unreadable.
  private static let latestSeconds = 1e15

  static func isHeld(_ value: PropertyListValue) -> Bool {
    switch value {
    case .date(let date): abs(date.timeIntervalSinceReferenceDate) <= latestSeconds
    case .array(let values): values.allSatisfy(isHeld)
    case .dictionary(let members): members.values.allSatisfy(isHeld)
    default: true
    }
  }

  static func object(of value: PropertyListValue) -> Any {
    switch value {
    case .bool(let bool): bool
    case .integer(let integer): integer
    case .double(let double): double
    case .string(let string): string
    case .date(let date): date
    case .data(let data): data
    case .array(let values): values.map(object)
    case .dictionary(let members): members.mapValues(object)
    }
  }

  static func value(of object: Any) throws(KithError) -> PropertyListValue {
    // On Linux, elements of containers are wrapped in optionals.
    if let optional = object as? any OptionalObject {
      guard let object = optional.wrapped else {
        throw KithError(.unsupportedValue, "Property lists hold no nil.")
      }
      return try value(of: object)
    }
    // `as? Bool` would accept the number 1, too.
    switch object {
    case let string as String: return .string(string)
    case let date as Date: return .date(date)
    case let data as Data: return .data(data)
    case let number as NSNumber: return try value(of: number)
    case let objects as [Any]:
      var values: [PropertyListValue] = []
      for object in objects { values.append(try value(of: object)) }
      return .array(values)
    case let members as [AnyHashable: Any]:
      var values: [String: PropertyListValue] = [:]
      for (key, object) in members {
        guard let key = key as? String else {
          throw KithError(.unsupportedValue, "Dictionaries of property lists have strings as keys.")
        }
        values[key] = try value(of: object)
      }
      return .dictionary(values)
    default:
      throw KithError(
        .unsupportedValue, "A store holds no \(type(of: object)), only what property lists hold.")
    }
  }

  private static func value(of number: NSNumber) throws(KithError) -> PropertyListValue {
    // Foundation has one object each for true and false.
    if number === NSNumber(value: true) { return .bool(true) }
    if number === NSNumber(value: false) { return .bool(false) }
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return .double(number.doubleValue)
    case UInt8(ascii: "Q") where number.uint64Value > UInt64(Int64.max):
      throw KithError(
        .unsupportedValue,
        "The integer is beyond \(Int64.max), the largest that property lists hold.")
    default: return .integer(number.int64Value)
    }
  }
}

/// Any optional, to unwrap it without knowing its type.
private protocol OptionalObject {
  var wrapped: Any? { get }
}

extension Optional: OptionalObject {
  var wrapped: Any? { self }
}
