/// The changes of a store from the moment the sequence was made, in order, for one consumer.
///
/// At most 64 changes wait; then the newest are joined, and nothing is lost (see
/// ``KeyValueStore/Change/isJoined``). The sequence ends when its task is cancelled or the node is
/// closed.
public struct StoreChanges: AsyncSequence, Sendable {
  /// The iterator of a sequence.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let subscription: Subscription

    /// Returns the next change, or nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> KeyValueStore.Change?
    {
      await subscription.buffer.next(isolation: actor)
    }
  }

  /// Ends with the last sequence or iterator that holds it.
  final class Subscription: Sendable {
    let buffer: ChangeBuffer
    private let view: StoreView
    private let number: UInt64

    init(buffer: ChangeBuffer, view: StoreView, number: UInt64) {
      self.buffer = buffer
      self.view = view
      self.number = number
    }

    deinit { view.unsubscribe(number) }
  }

  let subscription: Subscription

  package func takeWaiting() -> [KeyValueStore.Change] { subscription.buffer.takeAll() }

  /// Returns an iterator; all iterators of a sequence share the waiting changes.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: subscription) }
}
