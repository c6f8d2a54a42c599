/// A key of a store with the type of its value and what to return while it is missing.
///
/// ```swift
/// extension StoreKey where Value == Theme {
///   static var theme: Self { .init("theme", default: .system) }
/// }
/// ```
/// The default is returned, never written.
public struct StoreKey<Value: StoreValue>: Sendable {
  /// The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  public let name: String
  /// What a read returns while the key shows nothing, or something of another type.
  public let defaultValue: Value

  /// Makes a key.
  public init(_ name: String, default defaultValue: Value) {
    self.name = name
    self.defaultValue = defaultValue
  }
}
