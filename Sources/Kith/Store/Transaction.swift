public import KithCore

extension KeyValueStore {
  /// Writes that are accepted or refused together.
  ///
  /// Reads return the store as it was when the transaction began, with its own writes applied. If
  /// what they return changes before the writes are accepted, the transaction begins again.
  ///
  /// ```swift
  /// try await store.commit { $0[.unread] += 1 }
  /// ```
  public struct Transaction {
    /// What was read of the store, through any copy of the transaction.
    private final class Reads {
      var keys: Set<Key> = []
      var prefixes: Set<String> = []
    }

    private let base: [Key: PropertyListValue]
    private let reads = Reads()
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
      if let written = writes[key] { return written }
      reads.keys.insert(key)
      return base[key]
    }

    /// Returns the values of one type whose keys begin with a prefix; see
    /// ``StoreSnapshot/values(prefix:as:)``.
    ///
    /// The transaction begins again also if such a key is added or removed meanwhile.
    ///
    /// ```swift
    /// try await store.commit {
    ///   let tabs = $0.values(prefix: "tab.", as: URL.self)
    ///   $0[.tabCount] = tabs.count
    /// }
    /// ```
    ///
    /// - Complexity: O(*k*) in the store's keys, and O(*n*) in the size of the values returned.
    public func values<Value: StoreValue>(
      prefix: String, as type: Value.Type = PropertyListValue.self
    ) -> [Key: Value] {
      reads.prefixes.insert(prefix)
      var values = base
      for key in order { values[key] = writes[key] ?? nil }
      return StoreSnapshot(dictionary: values).values(prefix: prefix, as: type)
    }

    /// Throws unless the key shows a value; nil expects that it is missing.
    ///
    /// ```swift
    /// try await store.commit {
    ///   try $0.expect(nil, forKey: "owner")
    ///   $0.set("laptop", forKey: "owner")
    /// }
    /// ```
    ///
    /// - Throws: ``KithError`` with `unexpectedValue`.
    /// - Complexity: O(*n*) in the value's size.
    public func expect(_ expected: PropertyListValue?, forKey key: String) throws(KithError) {
      let shown = value(forKey: key)
      guard shown != expected else { return }
      throw .unexpected(Key(key), isExpected: expected != nil, isShown: shown != nil)
    }

    /// Throws unless the key reads as a value; a missing key reads as its default.
    ///
    /// ```swift
    /// try await store.commit {
    ///   try $0.expect(.dark, for: .theme)
    ///   $0.reset(.theme)  // only if it is still dark
    /// }
    /// ```
    ///
    /// - Throws: ``KithError`` with `unexpectedValue`.
    /// - Complexity: O(*n*) in the value's size.
    public func expect<Value: Equatable>(
      _ expected: Value, for key: StoreKey<Value>
    ) throws(KithError) {
      guard self[key] != expected else { return }
      throw .unexpected(
        Key(key.name), isExpected: true, isShown: value(forKey: key.name) != nil)
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

    /// Drops the writes.
    mutating func abandon() { (writes, order, problem) = ([:], [], nil) }

    /// The values that the reads returned, without those of the transaction's own writes.
    func expectation() throws(KithError) -> ExpectedValues {
      if reads.keys.isEmpty, reads.prefixes.isEmpty { return .none }
      var keys = reads.keys
      if !reads.prefixes.isEmpty {
        keys.formUnion(base.keys.filter { key in reads.prefixes.contains(where: key.hasPrefix) })
      }
      var values: [KithCore.Operation] = []
      values.reserveCapacity(keys.count)
      for key in keys.sorted() { values.append(try .encoding(base[key], forKey: key.text)) }
      return ExpectedValues(values: values, prefixes: reads.prefixes.sorted())
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
