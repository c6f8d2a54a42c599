internal import KithCore

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
public struct StoreKey<Value: StoreValue>: Sendable {
  /// The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  public let name: String
  /// The value that a read returns if the key shows none of its type; never written.
  public let defaultValue: Value

  /// Makes a key.
  ///
  /// - Parameters:
  ///   - name: The key's ``name``.
  ///   - defaultValue: The value that a read returns if the key shows none of its type.
  public init(_ name: String, default defaultValue: Value) {
    self.name = name
    self.defaultValue = defaultValue
  }
}

extension StoreKey where Value: ExpressibleByNilLiteral {
  /// Makes a key that reads as nil if it has no value; setting nil removes it.
  ///
  /// ```swift
  /// let draft = StoreKey<String?>("draft")
  /// ```
  ///
  /// - Parameter name: The key's ``name``.
  public init(_ name: String) {
    self.init(name, default: nil)
  }
}

extension StoreKey {
  func value(in shown: PropertyListValue?) -> Value {
    shown.flatMap(Value.init(propertyListValue:)) ?? defaultValue
  }

  func isDefault(in shown: PropertyListValue?) -> Bool {
    shown.flatMap(Value.init(propertyListValue:)) == nil
  }
}
