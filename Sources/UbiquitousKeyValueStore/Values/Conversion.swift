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
#endif
