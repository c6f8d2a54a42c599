public import KithCore

extension KeyValueStore {
  /// The changes from outside from now on: other devices' writes, signing in, effects of the quota.
  ///
  /// Make the sequence before you read, to miss no change. A program that applies its own writes at
  /// once, and these changes in order, shows what the store shows.
  ///
  /// ```swift
  /// for await change in store.changes { print(change.reason, change.keys) }
  /// ```
  public var changes: StoreChanges { changes(includingOwnWrites: false) }

  /// Returns every change from now on, with this program's own writes if requested.
  ///
  /// ```swift
  /// for await change in store.changes(includingOwnWrites: true) { log.append(change) }
  /// ```
  ///
  /// - Parameter includesOwnWrites: Whether to include this program's writes, as
  ///   `ChangeReason.ownWrite`.
  /// - Returns: A sequence of changes.
  public func changes(includingOwnWrites includesOwnWrites: Bool) -> StoreChanges {
    view.subscribe(seesOwnWrites: includesOwnWrites).changes
  }

  /// As ``changes(includingOwnWrites:)``, for a consumer that is no task: `onOffer` is called at each
  /// change and at the end.
  package func changes(
    includingOwnWrites includesOwnWrites: Bool, onOffer: @escaping @Sendable () -> Void
  ) -> StoreChanges {
    view.subscribe(seesOwnWrites: includesOwnWrites, onOffer: onOffer).changes
  }

  /// Returns the values shown now and every later change, also this program's own.
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
  /// ```swift
  /// for await theme in store.values(for: .theme) { apply(theme) }
  /// ```
  public func values<Value: Equatable>(for key: StoreKey<Value>) -> StoreValues<Value> {
    let name = Key(key.name)
    return values(.init(concerns: { $0 == name }, answer: { $0[key] }, isSame: { $0 == $1 }))
  }

  /// Returns the values of several keys now and after each change of one of them, by any writer.
  ///
  /// A transaction that writes two of the keys gives one element.
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

  /// Returns the values of one type whose keys begin with a prefix, now and after each change.
  ///
  /// ```swift
  /// for await tabs in store.values(prefix: "tab.", as: URL.self) { show(tabs) }
  /// ```
  ///
  /// ``StoreSnapshot/values(prefix:as:)`` reads them once.
  ///
  /// - Parameters:
  ///   - prefix: The start of the keys, compared as UTF-8 bytes; empty selects every key.
  ///   - type: The type of the values, by default any. Other values are left out.
  /// - Returns: A sequence of dictionaries by the whole keys.
  /// - Complexity: Each element takes O(*n*) in the prefix's keys and their values' size.
  public func values<Value: StoreValue & Equatable>(
    prefix: String, as type: Value.Type = PropertyListValue.self
  ) -> StoreValues<[Key: Value]> {
    values(
      .init(
        concerns: { $0.hasPrefix(prefix) }, answer: { $0.values(prefix: prefix, as: type) },
        isSame: { $0 == $1 }))
  }

  /// Returns the result of a closure over the store, now and after each change, by any writer.
  ///
  /// ```swift
  /// for await title in store.values(of: { "\($0[.project]): \($0[.chapter])" }) {
  ///   window.title = title
  /// }
  /// ```
  /// The closure is called after every change that the consumer takes. A result is an element if it
  /// differs from the previous one.
  ///
  /// - Parameter body: Reads the store at one moment, on the task that takes the elements.
  /// - Returns: A sequence of results.
  public func values<Value: Sendable & Equatable>(
    of body: @escaping @Sendable (StoreSnapshot) -> Value
  ) -> StoreValues<Value> {
    values(.init(concerns: { _ in true }, answer: body, isSame: { $0 == $1 }))
  }

  private func values<Value>(_ question: StoreValues<Value>.Question) -> StoreValues<Value> {
    StoreValues(question: question, view: view)
  }
}

/// The values of one key, of some keys or of all, now and after each change.
///
/// Each loop begins with the value at its start, also a second one over the same sequence. A slow
/// consumer skips values: the newest replaces one that waits, and the last is never skipped. A loop
/// ends when its task is cancelled or the accounts are closed. See `KeyValueStore.values(for:)`.
public struct StoreValues<Value: Sendable>: AsyncSequence, Sendable {
  struct Question: Sendable {
    /// Whether the key can change the result.
    let concerns: @Sendable (Key) -> Bool
    let answer: @Sendable (StoreSnapshot) -> Value
    let isSame: @Sendable (Value, Value) -> Bool
  }

  /// The iterator over the values.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let question: Question
    /// The values of the keys that `concerns` selects.
    private var shown: [Key: PropertyListValue]
    private var last: Value?
    private var changes: StoreChanges.AsyncIterator

    init(_ values: StoreValues) {
      question = values.question
      // A consumer of state wants the newest: changes that it has not taken are joined into one.
      let (current, changes) = values.view.subscribe(seesOwnWrites: true, limit: 1)
      shown = current.filter { values.question.concerns($0.key) }
      self.changes = changes.makeAsyncIterator()
    }

    /// Returns the next value that differs from the previous one, or nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
      guard let before = last else { return take() }
      while let change = await changes.next(isolation: actor) {
        var isTouched = false
        for item in change.items {
          guard question.concerns(item.key) else { continue }
          shown[item.key] = item.new
          isTouched = true
        }
        guard isTouched else { continue }
        let value = take()
        if !question.isSame(before, value) { return value }
      }
      return nil
    }

    private mutating func take() -> Value {
      let value = question.answer(StoreSnapshot(dictionary: shown))
      last = .some(value)
      return value
    }
  }

  let question: Question
  let view: StoreView

  /// Returns an iterator that begins with the value at this moment.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
