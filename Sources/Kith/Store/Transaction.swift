public import KithCore

extension KeyValueStore {
  /// Writes that are accepted or refused together.
  ///
  /// Reads return the store as it was when the transaction began, with its own writes applied.
  ///
  /// ```swift
  /// try await store.commit { $0[.unread] += 1 }
  /// ```
  public struct Transaction {
    private let base: [Key: PropertyListValue]
    private var writes: [Key: PropertyListValue?] = [:]
    private var order: [Key] = []
    private var problem: KithError?

    init(base: [Key: PropertyListValue]) {
      self.base = base
    }

    /// Returns the value that the key shows within the transaction.
    ///
    /// - Complexity: O(1).
    public func value(forKey key: String) -> PropertyListValue? {
      let key = Key(key)
      return if let written = writes[key] { written } else { base[key] }
    }

    /// Sets a key's value.
    ///
    /// - Complexity: O(1).
    public mutating func set(_ value: PropertyListValue, forKey key: String) {
      write(value, forKey: key)
    }

    /// Removes a key.
    ///
    /// - Complexity: O(1).
    public mutating func removeValue(forKey key: String) {
      write(nil, forKey: key)
    }

    /// Removes a key, so that it reads as its default.
    ///
    /// - Complexity: O(1).
    public mutating func reset<Value>(_ key: StoreKey<Value>) {
      write(nil, forKey: key.name)
    }

    /// The key's value, or its default if it shows no value of the type.
    ///
    /// Nil removes a key of an optional type. If a value cannot be encoded, the commit throws.
    ///
    /// ```swift
    /// try await store.commit {
    ///   $0[.window].width += 100
    ///   $0.reset(.draft)
    /// }
    /// ```
    public subscript<Value>(key: StoreKey<Value>) -> Value {
      get { key.value(in: value(forKey: key.name)) }
      set {
        do throws(KithError) {
          write(try newValue.storedValue(), forKey: key.name)
        } catch {
          var error = error
          error.key = key.name
          problem = problem ?? error
        }
      }
    }

    private mutating func write(_ value: PropertyListValue?, forKey key: String) {
      let key = Key(key)
      if writes.updateValue(value, forKey: key) == nil { order.append(key) }
    }

    /// One operation for each key, with its last write, in the order of first writes.
    func operations() throws(KithError) -> [KithCore.Operation] {
      if let problem { throw problem }
      var operations: [KithCore.Operation] = []
      operations.reserveCapacity(order.count)
      for key in order {
        operations.append(try .encoding(writes[key] ?? nil, forKey: key.text))
      }
      return operations
    }
  }
}

extension KithCore.Operation {
  static func encoding(_ value: PropertyListValue?, forKey key: String) throws(KithError) -> Self {
    guard let value else { return Self(key: key, value: nil) }
    do {
      return Self(key: key, value: try EncodedValue(value))
    } catch {
      throw KithError(error, key: key)
    }
  }
}
