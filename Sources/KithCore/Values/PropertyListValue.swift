public import FoundationEssentials

/// A value of a store, of a type that property lists hold.
///
/// ```swift
/// let window: PropertyListValue = ["width": 800, "title": "Notes", "isOpen": true]
/// ```
///
/// Values are equal if their bytes on the wire are. Doubles and dates compare by bit pattern: a NaN
/// equals the same NaN, `0.0` and `-0.0` differ. Strings and keys compare by UTF-8 bytes: a
/// composed and a decomposed "é" differ.
///
/// A Swift dictionary cannot hold two canonically equivalent keys. Bytes with such keys are
/// `ValueError.malformed`: dropping one would silently lose data.
public enum PropertyListValue: Sendable {
  /// True or false.
  case bool(Bool)
  /// A signed 64-bit integer.
  case integer(Int64)
  /// A 64-bit floating-point number; NaN and the infinities are allowed.
  case double(Double)
  /// Text.
  case string(String)
  /// A point in time: seconds since 2001-01-01T00:00:00Z in a `Double`.
  case date(Date)
  /// Bytes.
  case data(Data)
  /// Values in order.
  case array([PropertyListValue])
  /// Values by name.
  case dictionary([String: PropertyListValue])
}

extension PropertyListValue: Hashable {
  /// Returns whether both have the same encoding.
  ///
  /// - Complexity: O(*n*) in the size of the smaller value.
  public static func == (one: Self, other: Self) -> Bool {
    switch (one, other) {
    case (.bool(let a), .bool(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
    case (.string(let a), .string(let b)): a.utf8.elementsEqual(b.utf8)
    case (.date(let a), .date(let b)):
      a.timeIntervalSinceReferenceDate.bitPattern == b.timeIntervalSinceReferenceDate.bitPattern
    case (.data(let a), .data(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.dictionary(let a), .dictionary(let b)):
      a.count == b.count
        && a.allSatisfy { key, value in
          guard let index = b.index(forKey: key) else { return false }
          return b[index].key.utf8.elementsEqual(key.utf8) && b[index].value == value
        }
    default: false
    }
  }

  /// Hashes the value.
  ///
  /// - Complexity: O(*n*) in the size of the value.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .bool(let bool): hasher.combine(bool)
    case .integer(let integer): hasher.combine(integer)
    case .double(let double): hasher.combine(double.bitPattern)
    case .string(let string): hasher.combine(string)
    case .date(let date): hasher.combine(date.timeIntervalSinceReferenceDate.bitPattern)
    case .data(let data): hasher.combine(data)
    case .array(let values): hasher.combine(values)
    case .dictionary(let members):
      // Members have no order, so a commutative operation joins their hashes.
      var all = 0
      for (key, value) in members {
        var member = hasher
        member.combine(key)
        member.combine(value)
        all ^= member.finalize()
      }
      hasher.combine(all)
    }
  }
}

extension PropertyListValue {
  /// The maximum nesting: a scalar has depth 0, an array of scalars 1.
  package static let maximumDepth = 64
}
