public import KithCore

extension KeyValueStore {
  /// The changes from now on that come from outside: writes of other devices, signing in,
  /// effects of the quota.
  ///
  /// Make the sequence before you read, so that no change is missed between.
  ///
  /// ```swift
  /// for await change in store.changes { print(change.reason, change.keys) }
  /// ```
  ///
  /// Start with the values that the program shows, apply its own writes when they happen and these
  /// changes in order. The result is always the values that the store shows.
  public var changes: StoreChanges { changes(includingOwnWrites: false) }

  /// Returns every change from now on, with this program's own writes (`ChangeReason.ownWrite`)
  /// if requested.
  ///
  /// ```swift
  /// for await change in store.changes(includingOwnWrites: true) { log.append(change) }
  /// ```
  ///
  /// - Parameter includesOwnWrites: Whether writes of this program are included.
  /// - Returns: A sequence of changes.
  public func changes(includingOwnWrites includesOwnWrites: Bool) -> StoreChanges {
    view.subscribe(seesOwnWrites: includesOwnWrites).changes
  }

  /// Returns the values shown now and every change after them, including the program's own writes
  /// (`ChangeReason.ownWrite`).
  ///
  /// ```swift
  /// let (values, changes) = store.snapshotAndChanges()
  /// print("\(values.count) keys")
  /// for await change in changes { print(change.keys) }
  /// ```
  public func snapshotAndChanges() -> (
    values: [Key: PropertyListValue], changes: StoreChanges
  ) {
    view.subscribe(seesOwnWrites: true)
  }

  /// Returns a key's value now and after each change, by any writer.
  ///
  /// If values change faster than they are taken, some are skipped, but never the last.
  ///
  /// ```swift
  /// for await theme in store.values(for: .theme) { apply(theme) }
  /// ```
  public func values<Value: Equatable>(for key: StoreKey<Value>) -> StoreValues<Value> {
    let name = Key(key.name)
    return values(
      .init {
        $0 == name
      } answer: {
        $0[key]
      } isSame: {
        $0 == $1
      })
  }

  /// Returns the values of several keys now and after each change of one of them, by any writer.
  ///
  /// Each element holds the values of one moment: a transaction that writes two of the keys
  /// gives one element. If values change faster than they are taken, some are skipped, but never
  /// the last.
  ///
  /// ```swift
  /// for await (theme, size) in store.values(for: .theme, .fontSize) { layOut(theme, size) }
  /// ```
  ///
  /// - Parameter keys: The keys, two or more; their types may differ.
  /// - Returns: A sequence of tuples, in the order of the keys.
  public func values<each Value: Equatable>(
    for keys: repeat StoreKey<each Value>
  ) -> StoreValues<(repeat each Value)> {
    var names: Set<Key> = []
    for key in repeat each keys { names.insert(Key(key.name)) }
    return values(
      .init { [names] in
        names.contains($0)
      } answer: { snapshot in
        (repeat snapshot[each keys])
      } isSame: { before, now in
        for (old, new) in repeat (each before, each now) {
          if old != new { return false }
        }
        return true
      })
  }

  /// Returns the values of one type whose keys begin with a prefix, now and after each change, by
  /// any writer.
  ///
  /// If values change faster than they are taken, some are skipped, but never the last.
  ///
  /// ```swift
  /// for await tabs in store.values(prefix: "tab.", as: URL.self) { show(tabs) }
  /// ```
  ///
  /// ``StoreSnapshot/values(prefix:as:)`` reads them once.
  ///
  /// - Parameters:
  ///   - prefix: The start of the keys, compared as UTF-8 bytes; the empty prefix selects
  ///     every key.
  ///   - type: The type of the values; by default they are returned as stored. Values of another
  ///     type are left out.
  /// - Returns: A sequence of dictionaries by the whole keys.
  /// - Complexity: Each element takes O(*n*) in the keys with the prefix and the size of their values.
  public func values<Value: StoreValue & Equatable>(
    prefix: String, as type: Value.Type = PropertyListValue.self
  ) -> StoreValues<[Key: Value]> {
    values(
      .init {
        $0.hasPrefix(prefix)
      } answer: {
        $0.values(prefix: prefix, as: type)
      } isSame: {
        $0 == $1
      })
  }

  /// Returns the result of a closure over the store, now and after each change of it, by
  /// any writer.
  ///
  /// ```swift
  /// for await title in store.values(of: { "\($0[.project]): \($0[.chapter])" }) {
  ///   window.title = title
  /// }
  /// ```
  /// The closure is called after every change of the store, so no list of its keys is needed. Its
  /// result is an element if it differs from the previous one. If results change faster than they
  /// are taken, some are skipped, but never the last.
  ///
  /// - Parameter body: Reads the store at one moment, on the task that takes the elements.
  /// - Returns: A sequence of results.
  /// - Complexity: One call of the closure for each change that the consumer takes.
  public func values<Value: Sendable & Equatable>(
    of body: @escaping @Sendable (StoreSnapshot) -> Value
  ) -> StoreValues<Value> {
    values(
      .init { _ in
        true
      } answer: {
        body($0)
      } isSame: {
        $0 == $1
      })
  }

  private func values<Value>(_ question: StoreValues<Value>.Question) -> StoreValues<Value> {
    let (current, changes) = view.subscribe(seesOwnWrites: true)
    return StoreValues(question: question, current: current, changes: changes)
  }
}
