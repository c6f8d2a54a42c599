/// A property whose value is a key of a store.
///
/// ```swift
/// struct Settings {
///   @Stored var theme: Theme
///   @Stored var fontSize: Int
///
///   init(_ store: KeyValueStore) {
///     _theme = Stored(.theme, in: store)
///     _fontSize = Stored(.fontSize, in: store)
///   }
/// }
/// ```
/// The store is always named, so a test can pass its own; `TestAccount` of `KithTesting` makes one
/// in a line. If a store is at hand, one line is enough: `@Stored(.theme, in: store) var theme`.
///
/// Reading returns the value that the store shows, or the key's default, which is never written.
/// Assigning writes to memory at once and to the disk soon after, as
/// ``KeyValueStore/set(_:for:)`` does.
///
/// An assignment cannot throw. If the store refuses it, nothing changes: the property still returns
/// the value that the store shows. `$theme.error` holds the reason until a write is accepted, and
/// the closure `onRefusal` is called. To handle a refusal on the spot, call `try
/// $theme.set(.dark)`, which throws it.
@propertyWrapper
public struct Stored<Value: StoreValue>: Sendable {
  /// The key in its store, with its sequence of values, its last error, and writes that throw.
  public let projectedValue: StoredKey<Value>

  /// The value that the store shows, or the key's default.
  ///
  /// - Complexity: As for reading and writing the store.
  public var wrappedValue: Value {
    get { projectedValue.value }
    nonmutating set { projectedValue.assign(newValue) }
  }

  /// Makes a property of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: The store of the key.
  ///   - onRefusal: Called if the store refuses an assignment, on the thread that assigns.
  public init(
    _ key: StoreKey<Value>, in store: KeyValueStore,
    onRefusal: (@Sendable (KithError) -> Void)? = nil
  ) {
    projectedValue = StoredKey(key, .plain(store), onRefusal)
  }

  /// Makes a property of a key that `withObservationTracking` follows.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: The observed store of the key.
  ///   - onRefusal: Called if the store refuses an assignment, on the thread that assigns.
  public init(
    _ key: StoreKey<Value>, in store: ObservableStore,
    onRefusal: (@Sendable (KithError) -> Void)? = nil
  ) {
    projectedValue = StoredKey(key, .observable(store), onRefusal)
  }
}
