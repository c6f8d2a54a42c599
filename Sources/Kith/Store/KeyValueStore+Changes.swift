public import KithCore

extension KeyValueStore {
  /// What came from outside from now on: other devices' writes, the end of the first pull, what
  /// the quota changed. Make it before reading, so that nothing falls between.
  ///
  /// Applied in order to what the program showed, its own writes applied when they happened, the
  /// changes give what the store shows.
  public var changes: StoreChanges {
    view.subscribe(seesOwnWrites: false).changes
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
  public func values<Value: Equatable>(for key: StoreKey<Value>) -> StoreValues<Value> {
    let (values, changes) = view.subscribe(seesOwnWrites: true)
    return StoreValues(key: key, current: values[Key(key.name)], changes: changes)
  }

  /// The values of several keys now and whenever one of them changes, whoever wrote it, as of one
  /// moment: a transaction that writes two of them gives one element. Of values that follow each
  /// other faster than they are taken some may be left out, never the last.
  ///
  /// ```swift
  /// for await (theme, size) in store.values(for: .theme, .fontSize) { … }
  /// ```
  ///
  /// - Parameter keys: The keys, two or more; their types may differ.
  /// - Returns: A sequence of tuples, in the order of the keys.
  public func values<each Value: Equatable>(
    for keys: repeat StoreKey<each Value>
  ) -> StoreTuples<repeat each Value> {
    let (values, changes) = view.subscribe(seesOwnWrites: true)
    return StoreTuples(keys: (repeat each keys), current: values, changes: changes)
  }
}
