public import FoundationEssentials
public import KithCore

/// A type whose values a store can hold under a ``StoreKey``.
///
/// Property-list scalars, integers and floats of every width, dates, data, URLs and UUIDs conform,
/// also in arrays, optionals, and dictionaries with string keys. Any other `Codable` type conforms
/// by naming the protocol, also if the compiler makes its coding. An enum with raw values is stored
/// as its raw value:
///
/// ```swift
/// enum Theme: String, StoreValue { case system, dark }
/// struct Window: StoreValue { var width = 0, height = 0 }
/// extension Calendar.Identifier: @retroactive StoreValue {}
/// ```
/// Three limits come from property lists:
///
/// - Integers above `Int64.max`, such as some hashes, are refused: store them as text or data.
/// - A nil inside an array or a dictionary is refused: leave it out, or store an array of arrays.
/// - A set, and a dictionary whose keys are no strings, are encoded as arrays in random order. So the
///   same value, written by two processes, is a change. Store a sorted array instead.
///
/// `PropertyListValue(encoding:)` says how values are encoded. If a store shows a
/// value that the type cannot read, the key reads as its default. The value stays until the program
/// sets the key.
///
/// A new version of the program may add members, and more: <doc:ChangingAType>.
public protocol StoreValue: Codable, Sendable {
  /// The value whose members stand in for those that a stored value of this type lacks, in arrays,
  /// dictionaries and optionals too; nil, by default: none does.
  ///
  /// ```swift
  /// struct Bookmark: StoreValue {
  ///   var url = "", title = ""
  ///   var isPinned = false  // new in this version
  ///   static var memberDefaults: Self? { Self() }
  /// }
  /// ```
  /// The default of a ``StoreKey`` comes first.
  static var memberDefaults: Self? { get }
}

extension StoreValue {
  /// No value.
  public static var memberDefaults: Self? { nil }
}

extension PropertyListValue: StoreValue {}
extension Bool: StoreValue {}
extension String: StoreValue {}
extension Date: StoreValue {}
extension Data: StoreValue {}
extension URL: StoreValue {}
extension UUID: StoreValue {}
extension Double: StoreValue {}
extension Float: StoreValue {}
extension Int: StoreValue {}
extension Int8: StoreValue {}
extension Int16: StoreValue {}
extension Int32: StoreValue {}
extension Int64: StoreValue {}
extension UInt: StoreValue {}
extension UInt8: StoreValue {}
extension UInt16: StoreValue {}
extension UInt32: StoreValue {}
extension UInt64: StoreValue {}
extension Array: StoreValue where Element: StoreValue {}
extension Dictionary: StoreValue where Key == String, Value: StoreValue {}
extension Optional: StoreValue where Wrapped: StoreValue {}

extension StoreValue {
  /// Makes the value, or nil if the property-list value has another type.
  package init?(propertyListValue value: PropertyListValue) {
    if let read = try? PropertyListValueDecoder(value).decode(Self.self) {
      self = read
    } else {
      self.init(propertyListValue: value, missing: MemberDefaults { nil })
    }
  }

  /// As ``init(propertyListValue:)``, with values for missing members.
  init?(propertyListValue value: PropertyListValue, missing: MemberDefaults) {
    let decoder = PropertyListValueDecoder(value, missing: missing)
    guard value.holdsDictionary, let read = try? decoder.decode(Self.self) else { return nil }
    self = read
  }

  /// Returns the value to write, or nil to remove the key, which only an optional may return.
  package func storedValue() throws(KithError) -> PropertyListValue? {
    if let optional = self as? any OptionalStoreValue { return try optional.wrappedStoredValue() }
    return try PropertyListValue(encoding: self)
  }
}

/// Lets ``StoreValue/storedValue()`` recognise an optional.
private protocol OptionalStoreValue {
  func wrappedStoredValue() throws(KithError) -> PropertyListValue?
}

extension Optional: OptionalStoreValue where Wrapped: StoreValue {
  fileprivate func wrappedStoredValue() throws(KithError) -> PropertyListValue? {
    try self?.storedValue()
  }
}

extension PropertyListValue {
  /// The name of the value's kind in `--type`.
  package var typeName: String {
    switch self {
    case .bool: "bool"
    case .integer: "integer"
    case .double: "double"
    case .string: "string"
    case .date: "date"
    case .data: "data"
    case .array: "array"
    case .dictionary: "dictionary"
    }
  }
}
