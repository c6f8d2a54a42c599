internal import KithCore

/// The values of one key, of some keys or of all, now and after each change.
///
/// A slow consumer skips values: the newest replaces one that waits, and the last is never skipped. The sequence ends when its task is
/// cancelled or the accounts are closed. See `KeyValueStore.values(for:)`.
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
      shown = values.current.filter { values.question.concerns($0.key) }
      changes = values.changes.makeAsyncIterator()
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
  let current: [Key: PropertyListValue]
  let changes: StoreChanges

  /// Returns an iterator that begins with the value when the sequence was made.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
