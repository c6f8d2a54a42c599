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
