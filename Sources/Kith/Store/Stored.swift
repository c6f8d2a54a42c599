internal import KithCore
internal import Observation
internal import Synchronization

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
/// Assigning to a member, as in `count += 1`, reads and then writes: a write by another task between
/// the two is lost. `KeyValueStore.commit` loses none.
///
/// If the store refuses an assignment, nothing changes, `onRefusal` is called, and `$theme.error`
/// holds the reason until a write is accepted. `withObservationTracking` follows both. To throw it
/// instead, call `try $theme.set(.dark)`.
@propertyWrapper
public struct Stored<Value: StoreValue>: Sendable {
  /// The last error, shared by all copies of the property.
  private final class LastError: Observable, Sendable {
    private let registrar = ObservationRegistrar()
    private let last = Mutex<KithError?>(nil)

    var error: KithError? {
      get {
        registrar.access(self, keyPath: \.error)
        return last.withLock { $0 }
      }
      set {
        let isSame = last.withLock { last in
          defer { last = newValue }
          return last == nil && newValue == nil
        }
        if !isSame { registrar.withMutation(of: self, keyPath: \.error) {} }
      }
    }
  }

  /// The key.
  public let key: StoreKey<Value>
  /// The store.
  public let store: KeyValueStore
  private let onRefusal: (@Sendable (KithError) -> Void)?
  private let last = LastError()

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
    self.key = key
    self.store = store
    self.onRefusal = onRefusal
  }

  /// The property itself: `$theme` has the key, the last error, and writes that throw.
  public var projectedValue: Stored<Value> { self }

  /// The value that the store shows, or the key's default.
  ///
  /// - Complexity: As for reading and writing the store.
  public var wrappedValue: Value {
    get { store[key] }
    nonmutating set {
      do throws(KithError) {
        try set(newValue)
      } catch {
        onRefusal?(error)
      }
    }
    // For assignments to a member or an element, which would replace the rest by the default's. Swift
    // does not call it for local variables.
    nonmutating _modify {
      var value = wrappedValue
      let isReadable = !isUnreadable
      yield &value
      if isReadable {
        wrappedValue = value
      } else {
        let error = KithError.unreadable(key)
        last.error = error
        onRefusal?(error)
      }
    }
  }

  /// Whether the property reads as its default because the store shows no value of its type.
  ///
  /// ```swift
  /// resetButton.isEnabled = !settings.$theme.isDefault
  /// ```
  public var isDefault: Bool { store.isDefault(key) }

  /// Whether the key shows a value that its type cannot read; see
  /// ``KeyValueStore/isUnreadable(_:)``. Then assigning to a member is refused, and assigning a whole
  /// value replaces it. If the property is a local variable, Swift assigns the whole value also for a
  /// member.
  public var isUnreadable: Bool { store.isUnreadable(key) }

  /// The reason why the last write was refused; nil after an accepted one.
  public var error: KithError? { last.error }

  /// Sets the value as an assignment does, but throws if the store refuses it.
  ///
  /// ```swift
  /// try settings.$theme.set(.dark)
  /// ```
  ///
  /// - Throws: ``KithError`` as ``KeyValueStore/set(_:for:)`` does; then nothing has changed.
  public func set(_ value: Value) throws(KithError) {
    try write { (store) throws(KithError) in try store.set(value, for: key) }
  }

  /// Removes the key, so that the property reads as its default.
  ///
  /// - Throws: ``KithError`` as ``KeyValueStore/reset(_:)`` does.
  public func reset() throws(KithError) {
    try write { (store) throws(KithError) in try store.reset(key) }
  }

  private func write(_ body: (KeyValueStore) throws(KithError) -> Void) throws(KithError) {
    do throws(KithError) {
      try body(store)
      last.error = nil
    } catch {
      last.error = error
      throw error
    }
  }
}

extension Stored where Value: Equatable {
  /// The value now and after each change, by any writer.
  public var values: StoreValues<Value> { store.values(for: key) }
}
