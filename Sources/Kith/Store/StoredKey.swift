internal import KithCore
internal import Synchronization

/// A key in its store: for a property `@Stored var theme`, the value of `$theme`.
public struct StoredKey<Value: StoreValue>: Sendable {
  enum Place: Sendable {
    case plain(KeyValueStore)
    case observable(ObservableStore)
  }

  /// The last error, shared by all copies of the property.
  private final class LastError: Sendable {
    let error = Mutex<KithError?>(nil)
  }

  /// The key.
  public let key: StoreKey<Value>
  private let place: Place
  private let onRefusal: (@Sendable (KithError) -> Void)?
  private let last = LastError()

  init(
    _ key: StoreKey<Value>, _ place: Place, _ onRefusal: (@Sendable (KithError) -> Void)?
  ) {
    self.key = key
    self.place = place
    self.onRefusal = onRefusal
  }

  /// The store.
  public var store: KeyValueStore {
    switch place {
    case .plain(let store): store
    case .observable(let observable): observable.store
    }
  }

  /// The value that the store shows, or the key's default.
  public var value: Value {
    switch place {
    case .plain(let store): store[key]
    case .observable(let observable): observable[key]
    }
  }

  /// Whether the property reads as its default because the store shows no value of its type.
  ///
  /// ```swift
  /// resetButton.isEnabled = !settings.$theme.isDefault
  /// ```
  public var isDefault: Bool {
    switch place {
    case .plain(let store): store.isDefault(key)
    case .observable(let observable): observable.isDefault(key)
    }
  }

  /// The reason why the last write was refused; nil after an accepted one.
  public var error: KithError? { last.error.withLock { $0 } }

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
  public func remove() throws(KithError) {
    try write { (store) throws(KithError) in try store.reset(key) }
  }

  func assign(_ value: Value) {
    do throws(KithError) {
      try set(value)
    } catch {
      onRefusal?(error)
    }
  }

  private func write(_ body: (KeyValueStore) throws(KithError) -> Void) throws(KithError) {
    do throws(KithError) {
      switch place {
      case .plain(let store): try body(store)
      case .observable(let observable): try observable.write([Key(key.name)], body)
      }
      last.error.withLock { $0 = nil }
    } catch {
      last.error.withLock { $0 = error }
      throw error
    }
  }
}

extension StoredKey where Value: Equatable {
  /// The value now and after each change, by any writer.
  public var values: StoreValues<Value> { store.values(for: key) }
}
