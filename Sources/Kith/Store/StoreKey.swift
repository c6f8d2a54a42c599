internal import KithCore

/// A key of a store with the type of its value and what to return while it is missing.
///
/// Keys are constants of any type of the program, or members of the key type itself, which are
/// shorter to use:
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
/// The default is returned, never written. Where a module has `defaultIsolation(MainActor.self)`,
/// write `nonisolated enum Keys` and `nonisolated extension`, so that other actors can use the keys.
public struct StoreKey<Value: StoreValue>: Sendable {
  /// The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  public let name: String
  /// What a read returns while the key shows nothing, or something of another type.
  public let defaultValue: Value

  /// Makes a key.
  ///
  /// - Parameters:
  ///   - name: The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  ///   - defaultValue: What a read returns while the key is missing.
  public init(_ name: String, default defaultValue: Value) {
    self.name = name
    self.defaultValue = defaultValue
  }
}

extension StoreKey {
  /// What the key reads as where a store shows the given value.
  func value(in shown: PropertyListValue?) -> Value {
    shown.flatMap(Value.init(propertyListValue:)) ?? defaultValue
  }

  /// Whether that is the default, for want of a value of the type.
  func isDefault(in shown: PropertyListValue?) -> Bool {
    shown.flatMap(Value.init(propertyListValue:)) == nil
  }
}
