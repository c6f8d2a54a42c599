/// A property that is a key of a store.
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
/// The store is always named, so a test gives its own (`TestAccount` of `KithTesting` makes one in a
/// line). Where it is at hand, one line does: `@Stored(.theme, in: store) var theme`.
///
/// Reading gives what the store shows, or the key's default, which is never written. Assigning
/// writes in memory at once, and to the disk soon after, as ``KeyValueStore/set(_:for:)`` does.
///
/// An assignment cannot throw. One that the store refuses changes nothing: the property goes on
/// showing what the store shows, `$theme.error` says why until a write is accepted, and the closure
/// `onRefusal` hears of it. Where a refusal must be dealt with on the spot, `try $theme.set(.dark)`
/// throws it.
@propertyWrapper
public struct Stored<Value: StoreValue>: Sendable {
  /// The key in its store: its values as they come, its last error, and writes that throw.
  public let projectedValue: StoredKey<Value>

  /// The value that the store shows, or the key's default.
  ///
  /// - Complexity: As reading and writing the store.
  public var wrappedValue: Value {
    get { projectedValue.value }
    nonmutating set { projectedValue.assign(newValue) }
  }

  /// Makes a property of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: The store that it is a key of.
  ///   - onRefusal: Hears of assignments that the store refuses, on the thread that assigns.
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
  ///   - store: The observed store that it is a key of.
  ///   - onRefusal: Hears of assignments that the store refuses, on the thread that assigns.
  public init(
    _ key: StoreKey<Value>, in store: ObservableStore,
    onRefusal: (@Sendable (KithError) -> Void)? = nil
  ) {
    projectedValue = StoredKey(key, .observable(store), onRefusal)
  }
}
