public import FoundationEssentials
public import KithCore

/// A key of a store, with the type of its value and a default.
///
/// Declare keys as constants of any type, or as members of the key type itself, which are shorter
/// to use:
///
/// ```swift
/// enum Keys {
///   static let theme = StoreKey("theme", default: Theme.system)
///   static let draft = StoreKey<String?>("draft")
/// }
/// store[Keys.theme]
///
/// extension StoreKey where Value == Theme {
///   static var theme: Self { .init("theme", default: .system) }
/// }
/// store[.theme]
/// ```
/// If a module has `defaultIsolation(MainActor.self)`, write `nonisolated enum Keys` and
/// `nonisolated extension`, so that other actors can use the keys.
///
/// <doc:ChangingAType> says how the type of a key may change from one version of a program to the
/// next.
public struct StoreKey<Value: StoreValue>: Sendable {
  /// The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  public let name: String
  /// The value that a read returns if the key shows none of its type; never written.
  ///
  /// Its members also stand in for those that a stored value lacks.
  public let defaultValue: Value
  private let migrating: (@Sendable (PropertyListValue) -> Value?)?

  /// Makes a key.
  ///
  /// ```swift
  /// let size = StoreKey("size", default: 13.0) { old in
  ///   if case .string("large") = old { 20 } else { nil }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The key's ``name``.
  ///   - defaultValue: The value that a read returns if the key shows none of its type.
  ///   - migrating: Makes a value of one that the type cannot read, such as an older program's; nil:
  ///     it cannot either. Called at each such read; only the program's next write changes the store.
  public init(
    _ name: String, default defaultValue: Value,
    migrating: (@Sendable (PropertyListValue) -> Value?)? = nil
  ) {
    self.name = name
    self.defaultValue = defaultValue
    self.migrating = migrating
  }
}

extension StoreKey where Value: ExpressibleByNilLiteral {
  /// Makes a key that reads as nil if it has no value; setting nil removes it.
  ///
  /// ```swift
  /// let draft = StoreKey<String?>("draft")
  /// ```
  ///
  /// - Parameters:
  ///   - name: The key's ``name``.
  ///   - migrating: Makes a value of one that the type cannot read.
  public init(_ name: String, migrating: (@Sendable (PropertyListValue) -> Value?)? = nil) {
    self.init(name, default: nil, migrating: migrating)
  }
}

extension StoreKey {
  func value(in shown: PropertyListValue?) -> Value {
    read(shown) ?? defaultValue
  }

  func isDefault(in shown: PropertyListValue?) -> Bool {
    read(shown) == nil
  }

  func isUnreadable(in shown: PropertyListValue?) -> Bool {
    shown != nil && read(shown) == nil
  }

  /// Nil if the value is missing, or cannot be read.
  func read(_ shown: PropertyListValue?) -> Value? {
    guard let shown else { return nil }
    return (try? PropertyListValueDecoder(shown).decode(Value.self)) ?? migrating?(shown)
      ?? filled(shown)
  }

  /// Reads a value whose missing members come from the defaults.
  private func filled(_ shown: PropertyListValue) -> Value? {
    Value(propertyListValue: shown, missing: MemberDefaults { encodedDefault })
  }

  private var encodedDefault: PropertyListValue? { try? defaultValue.storedValue() }

  /// The value to write over a shown one, whose members that the type does not know it keeps; nil
  /// removes the key.
  func stored(
    _ value: Value, over shown: PropertyListValue?
  ) throws(KithError) -> PropertyListValue? {
    do throws(KithError) {
      guard let new = try value.storedValue() else { return nil }
      // A migrated value has another form: none of its members is kept.
      guard let shown, shown.holdsDictionary, new.holdsDictionary,
        let read = (try? PropertyListValueDecoder(shown).decode(Value.self))
          ?? (migrating?(shown) == nil ? filled(shown) : nil),
        let known = try? read.storedValue()
      else { return new }
      return new.keepingMembers(of: shown, readAs: known)
    } catch {
      var error = error
      error.key = Key(name)
      throw error
    }
  }
}

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
