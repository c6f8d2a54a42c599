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
/// The store is always named, so a test can pass its own (`TestAccount` of `KithTesting`). If a
/// store is at hand, one line is enough: `@Stored(.theme, in: store) var theme`.
///
/// Reading returns the shown value, or the key's default. Assigning writes as
/// ``KeyValueStore/set(_:for:)`` does.
///
/// If the store refuses an assignment, nothing changes, `onRefusal` is called, and `$theme.error`
/// holds the reason until a write is accepted. To throw it instead, call `try $theme.set(.dark)`.
@propertyWrapper
public struct Stored<Value: StoreValue>: Sendable {
  /// The key in its store, with its values, last error, and throwing writes.
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
