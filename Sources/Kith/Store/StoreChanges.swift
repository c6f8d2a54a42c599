/// The changes of a store from the moment it was made, in order, for one consumer.
///
/// At most 64 changes wait; after that the newest ones are joined into one, so that nothing is
/// lost: see ``Change/isJoined``. It ends when its task is cancelled or the node is closed.
public struct StoreChanges: AsyncSequence, Sendable {
  /// Takes the changes of one sequence.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let subscription: Subscription

    /// The next change, or nil at the end.
    public mutating func next() async -> Change? {
      await subscription.buffer.next(isolation: nil)
    }

    /// The next change, or nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Change? {
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

  /// Takes what waits, and waits for nothing.
  package func takeWaiting() -> [Change] { subscription.buffer.takeAll() }

  /// An iterator; all iterators of a sequence share what waits.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: subscription) }
}
