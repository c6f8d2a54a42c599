public import KithCore
internal import Synchronization

extension KeyValueStore {
  /// Writes several keys as one transaction, and returns once it survives a crash.
  ///
  /// ```swift
  /// try await store.commit {
  ///   $0[.theme] = .dark
  ///   $0[.window].width += 100
  /// }
  /// ```
  /// The body is called on the caller's actor, if there is one. It reads the store as it was then.
  /// If another task, program or device changes a key that the body read through `$0` before the
  /// writes are accepted, nothing is written, and the body runs again. So no update is lost among the
  /// programs of this host.
  ///
  /// The body may therefore run several times: let it compute, and act on what commit returns. A
  /// read that is not made through `$0` is not checked. A body that writes nothing runs once. Tasks
  /// may share a commit to the disk.
  ///
  /// Between devices there is no lock: if two write one key before either hears of the other, the
  /// later write wins.
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written.
  /// - Returns: The body's result.
  /// - Throws: ``KithError`` as ``set(_:forKey:)-(_,String)`` does, `conflict` if others changed what the body
  ///   read at each of 1,000 tries, or the body's error.
  /// - Complexity: O(*w* log *k*) in the writes and the store's keys, O(*n*) in the size of the values
  ///   read.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var holdsQueue = false
    defer { if holdsQueue { retries.release() } }
    for _ in 0..<Limits.commitTries {
      var transaction = begin()
      let result = try body(&transaction)
      if try await commit(consume transaction) { return result }
      // One task at a time tries again: many that met would keep each other from being accepted.
      if !holdsQueue { await retries.acquire() }
      holdsQueue = true
    }
    throw .conflict
  }

  /// Writes several keys as one transaction, with a body that may throw any error.
  ///
  /// ```swift
  /// try await store.commit {
  ///   guard $0[.credits] >= price else { throw ShopError.tooFewCredits }
  ///   $0[.credits] -= price
  /// }
  /// ```
  /// If another task or program of this host spends the credits first, the body runs again, and
  /// throws. Another device may spend the same credits at the same time; then the later write wins.
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written. It may run several times.
  /// - Returns: The body's result.
  /// - Throws: The body's error, or ``KithError`` as ``set(_:forKey:)-(_,String)`` does, or `conflict` if others
  ///   changed what the body read at each of 1,000 tries.
  /// - Complexity: O(*w* log *k*) in the writes and the store's keys, O(*n*) in the size of the values
  ///   read.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws -> Result
  ) async throws -> Result {
    try await commit { (transaction) throws(KithError) in transaction.attempt(body) }.get()
  }

  package func begin() -> Transaction { Transaction(base: view.values) }

  /// Tries once to write a transaction; false if others changed what it read.
  package nonisolated(nonsending) func commit(
    _ transaction: consuming Transaction
  ) async throws(KithError) -> Bool {
    let (operations, expected) = (try transaction.operations(), try transaction.expectation())
    // The view would copy all values for the write while a transaction shares them.
    _ = consume transaction
    guard !operations.isEmpty else { return true }
    do throws(KithError) {
      try await awaitingService { service async throws(KithError) in
        try await service.writeDurably(identifier, operations, expecting: expected)
      }
      return true
    } catch {
      guard error.code == .unexpectedValue else { throw error }
      return false
    }
  }
}

/// Lets in so many tasks at a time, in order of arrival.
final class TaskQueue: Sendable {
  private struct State {
    var taken = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int = 1) { self.limit = limit }

  /// The tasks that wait.
  var waiting: Int { state.withLock(\.waiters.count) }

  /// Returns once few enough earlier tasks have the queue, also if the task is cancelled.
  nonisolated(nonsending) func acquire() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        if state.taken == limit {
          state.waiters.append(continuation)
          return false
        }
        state.taken += 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  func release() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if !state.waiters.isEmpty { return state.waiters.removeFirst() }
      state.taken -= 1
      return nil
    }
    next?.resume()
  }
}

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
    /// The keys and values that were read of the store, through any copy of the transaction.
    private final class Reads {
      var keys: Set<Key> = []
      var prefixes: Set<String> = []
      /// The keys that were read as their default because their value has another type.
      var unreadable: Set<Key> = []
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

    /// Returns whether a key shows a value that its type cannot read; see
    /// ``KeyValueStore/isUnreadable(_:)``.
    ///
    /// - Complexity: As for reading the key.
    public func isUnreadable<Value>(_ key: StoreKey<Value>) -> Bool {
      key.isUnreadable(in: value(forKey: key.name))
    }

    /// The key's value, or its default if it shows no value of the type.
    ///
    /// Nil removes a key of an optional type. If a value cannot be encoded, the commit throws. If the
    /// key was read as its default because it shows a value of another type, and is then set, the
    /// commit throws ``KithError`` with `unreadable`, unless the key is reset before.
    ///
    /// ```swift
    /// try await store.commit {
    ///   $0[.window].width += 100
    ///   $0.reset(.draft)
    /// }
    /// ```
    public subscript<Value>(key: StoreKey<Value>) -> Value {
      get {
        let shown = value(forKey: key.name)
        if let value = key.read(shown) { return value }
        if shown != nil { reads.unreadable.insert(Key(key.name)) }
        return key.defaultValue
      }
      set {
        do throws(KithError) {
          if reads.unreadable.contains(Key(key.name)) { throw .unreadable(key) }
          write(try key.stored(newValue, over: replaced(by: key)), forKey: key.name)
        } catch {
          problem = problem ?? error
        }
      }
    }

    /// The value that a typed write replaces, which counts as read if members of it may stay.
    private func replaced<Value>(by key: StoreKey<Value>) -> PropertyListValue? {
      let name = Key(key.name)
      let shown: PropertyListValue? = if let written = writes[name] { written } else { base[name] }
      return shown?.holdsDictionary == true ? value(forKey: key.name) : nil
    }

    private mutating func write(_ value: PropertyListValue?, forKey key: String) {
      let key = Key(key)
      reads.unreadable.remove(key)
      if writes.updateValue(value, forKey: key) == nil { order.append(key) }
    }

    /// Calls a body that may throw any error; if it does, drops the writes.
    mutating func attempt<Result>(
      _ body: (inout Self) throws -> Result
    ) -> Swift.Result<Result, any Error> {
      let outcome = Swift.Result { try body(&self) }
      if case .failure = outcome { (writes, order, problem) = ([:], [], nil) }
      return outcome
    }

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
      throw KithError(error, key: Key(key))
    }
  }
}
