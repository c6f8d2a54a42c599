public import KithCore

extension KeyValueStore {
  /// What came from outside from now on: other devices' writes, the end of the first pull, what
  /// the quota changed. Make it before reading, so that nothing falls between.
  ///
  /// Applied in order to what the program showed, its own writes applied when they happened, the
  /// changes give what the store shows.
  public var changes: StoreChanges { changes(includingOwnWrites: false) }

  /// Every change from now on, with this program's own writes (``Change/Reason/ownWrite``) if asked
  /// for.
  ///
  /// ```swift
  /// for await change in store.changes(includingOwnWrites: true) { log.append(change) }
  /// ```
  ///
  /// - Parameter includesOwnWrites: Whether what this program writes is a change, too.
  /// - Returns: A sequence of changes.
  public func changes(includingOwnWrites includesOwnWrites: Bool) -> StoreChanges {
    view.subscribe(seesOwnWrites: includesOwnWrites).changes
  }

  /// What is shown at this moment, and every change after it, the program's own writes included
  /// (``Change/Reason/ownWrite``).
  public func snapshotAndChanges() -> (
    values: [Key: PropertyListValue], changes: StoreChanges
  ) {
    view.subscribe(seesOwnWrites: true)
  }

  /// A key's value now and whenever it changes, whoever wrote it. Of values that follow each other
  /// faster than they are taken some may be left out, never the last.
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

  /// The values of several keys now and whenever one of them changes, whoever wrote it, as of one
  /// moment: a transaction that writes two of them gives one element. Of values that follow each
  /// other faster than they are taken some may be left out, never the last.
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

  /// The values of one type of all keys that begin with a prefix, now and whenever one of them
  /// changes, whoever wrote it. Of values that follow each other faster than they are taken some may
  /// be left out, never the last.
  ///
  /// ```swift
  /// for await tabs in store.values(prefix: "tab.", as: URL.self) { show(tabs) }
  /// ```
  ///
  /// ``StoreSnapshot/values(prefix:as:)`` reads them once.
  ///
  /// - Parameters:
  ///   - prefix: What the keys begin with, compared as UTF-8 bytes; the empty one is every key's.
  ///   - type: The type of the values; without it they are as they are stored. A value of another type
  ///     is left out.
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

  /// What a closure makes of the store, now and whenever that changes, whoever wrote.
  ///
  /// ```swift
  /// for await title in store.values(of: { "\($0[.project]): \($0[.chapter])" }) {
  ///   window.title = title
  /// }
  /// ```
  /// It needs no list of what the closure reads: the closure is called after every change of the
  /// store, and its result is an element where it differs from the one before. Of results that follow
  /// each other faster than they are taken some may be left out, never the last.
  ///
  /// - Parameter body: Reads the store as of one moment, on the task that takes the elements.
  /// - Returns: A sequence of results.
  /// - Complexity: One call of the closure for each change that is taken.
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
