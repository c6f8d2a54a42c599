public import KithCore
internal import Synchronization

extension KeyValueStore {
  /// A change of the values that a store shows.
  public struct Change: Sendable, Hashable {
    /// The old and the new value of one key.
    public struct Item: Sendable, Hashable {
      /// The key.
      public var key: Key
      /// The value before; nil if the key showed none.
      public var old: PropertyListValue?
      /// The value now; nil if the key shows none.
      public var new: PropertyListValue?
    }

    /// The cause. Joined changes have the cause that ``ChangeReason`` declares last.
    public var reason: ChangeReason
    /// The changed keys, each with its old and new value, in order.
    public var items: [Item]
    /// The keys of this program's writes that lost, in order.
    public var superseded: [Key] = []
    /// Whether changes were joined because the consumer was slow.
    public var isJoined = false

    /// The changed keys, in order.
    ///
    /// - Complexity: O(*n*).
    public var keys: [Key] { items.map(\.key) }

    /// Returns a key's old and new value, or nil if it did not change.
    ///
    /// The default stands in if the key showed no value of its type.
    ///
    /// ```swift
    /// for await change in store.changes {
    ///   if let theme = change[.theme] { animate(from: theme.old, to: theme.new) }
    /// }
    /// ```
    ///
    /// - Complexity: O(*n*) in the keys of the change.
    public subscript<Value>(key: StoreKey<Value>) -> (old: Value, new: Value)? {
      let name = Key(key.name)
      guard let item = items.first(where: { $0.key == name }) else { return nil }
      return (key.value(in: item.old), key.value(in: item.new))
    }
  }
}

extension ChangeReason {
  func joined(with other: Self) -> Self {
    Self.allCases.last { $0 == self || $0 == other } ?? self
  }
}

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

  /// Whether it is finished, and every change was taken.
  package var hasEnded: Bool { subscription.buffer.hasEnded }

  /// Whether changes wait, or none will come any more.
  package var isReady: Bool { subscription.buffer.isReady }

  package var isFinished: Bool { subscription.buffer.isFinished }

  package func takeFirst() -> KeyValueStore.Change? { subscription.buffer.takeFirst() }

  package func takeWaiting() -> [KeyValueStore.Change] { subscription.buffer.takeAll() }

  /// Returns an iterator; all iterators of a sequence share the waiting changes.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: subscription) }
}

/// The changes that one consumer has not taken yet.
///
/// If the buffer is full, a new change is joined with the last one. Each key keeps its first old
/// value and gets the last new one, so replaying the changes over the old view gives the new view.
/// Waiting changes take at most ``bytesLimit`` and one view.
///
/// A consumer that does not see own writes has applied them already, so they update the waiting
/// changes of their keys.
final class ChangeBuffer: Sendable {
  static let limit = 64
  /// From this many waiting bytes on, later changes are joined.
  static let bytesLimit = 1 << 20

  private struct State {
    var waiting: [PendingChange] = []
    /// The waiting consumer. It takes a change only once it runs; until then own writes update the
    /// change.
    var consumer: CheckedContinuation<Void, Never>?
    var isFinished = false
  }

  private let state = Mutex(State())
  private let seesOwnWrites: Bool
  /// The program whose writes the consumer counts as its own; nil: all of this device, as
  /// `kith watch` does.
  private let own: WriteOrigin?
  /// From this many waiting changes on, later changes are joined.
  private let limit: Int
  /// Called at each change and at the end, for a consumer that is no task.
  private let onOffer: (@Sendable () -> Void)?

  init(
    seesOwnWrites: Bool, own: WriteOrigin? = .owner,
    limit: Int = ChangeBuffer.limit, onOffer: (@Sendable () -> Void)? = nil
  ) {
    self.seesOwnWrites = seesOwnWrites
    self.own = own
    self.limit = limit
    self.onOffer = onOffer
  }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  var hasEnded: Bool { state.withLock { $0.isFinished && $0.waiting.isEmpty } }

  var isReady: Bool { state.withLock { $0.isFinished || !$0.waiting.isEmpty } }

  var isAwaited: Bool { state.withLock { $0.consumer != nil } }

  /// Why the consumer's values change by a write of this device.
  func reason(of origin: WriteOrigin) -> ChangeReason {
    own == nil || own == origin ? .ownWrite : .externalChange
  }

  /// Returns a closure to run unlocked.
  func offer(_ change: KeyValueStore.Change) -> (() -> Void)? {
    state.withLock { state -> (() -> Void)? in
      guard !state.isFinished else { return nil }
      if change.reason == .ownWrite && !seesOwnWrites {
        for index in state.waiting.indices { state.waiting[index].updateOwnWrite(change) }
        return nil
      }
      let bytes = state.waiting.reduce(0) { $0 + $1.bytes }
      if state.waiting.isEmpty || state.waiting.count < limit && bytes < Self.bytesLimit {
        state.waiting.append(PendingChange(change))
      } else {
        state.waiting[state.waiting.count - 1].join(change)
      }
      let consumer = state.consumer.take()
      guard consumer != nil || onOffer != nil else { return nil }
      return {
        consumer?.resume()
        self.onOffer?()
      }
    }
  }

  func takeFirst() -> KeyValueStore.Change? {
    state.withLock { state in
      state.waiting.isEmpty ? nil : state.waiting.removeFirst().change
    }
  }

  func takeAll() -> [KeyValueStore.Change] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting.map(\.change)
    }
  }

  /// Returns nil at the end, on cancellation, or if another consumer waits already.
  ///
  /// The consumer's actor takes the change, so that no write of that actor comes in between.
  func next(isolation actor: isolated (any Actor)? = #isolation) async -> KeyValueStore.Change? {
    while !Task.isCancelled {
      let (change, mayCome) = state.withLock { state -> (KeyValueStore.Change?, Bool) in
        if !state.waiting.isEmpty { return (state.waiting.removeFirst().change, false) }
        return (nil, !state.isFinished && state.consumer == nil)
      }
      guard mayCome else { return change }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let mustWait = state.withLock { state in
            guard state.waiting.isEmpty, !state.isFinished, state.consumer == nil,
              !Task.isCancelled
            else { return false }
            state.consumer = continuation
            return true
          }
          if !mustWait { continuation.resume() }
        }
      } onCancel: {
        state.withLock { $0.consumer.take() }?.resume()
      }
    }
    return nil
  }

  func finish() {
    let consumer = state.withLock { state in
      state.isFinished = true
      return state.consumer.take()
    }
    consumer?.resume()
    onOffer?()
  }
}

struct PendingChange {
  private var reason: ChangeReason
  private var items: [Key: KeyValueStore.Change.Item]
  private var superseded: Set<Key>
  private var isJoined: Bool
  private(set) var bytes = 0
  /// Keys that the program has written since. Joining keeps them, because the program no longer
  /// shows their old value.
  private var written: Set<Key> = []

  init(_ change: KeyValueStore.Change) {
    reason = change.reason
    items = Dictionary(change.items.map { ($0.key, $0) }) { _, later in later }
    superseded = Set(change.superseded)
    isJoined = change.isJoined
    bytes = change.items.reduce(0) { $0 + $1.weight }
  }

  var change: KeyValueStore.Change {
    KeyValueStore.Change(
      reason: reason, items: items.sorted { $0.key < $1.key }.map(\.value),
      superseded: superseded.sorted(), isJoined: isJoined)
  }

  mutating func updateOwnWrite(_ change: KeyValueStore.Change) {
    for item in change.items {
      let key = item.key
      guard let waiting = items[key] else { continue }
      bytes += item.weight - waiting.weight
      items[key]?.new = item.new
      written.insert(key)
    }
  }

  /// Leaves out a key that shows its first value again, so the change has at most the keys of the
  /// old and the new view.
  mutating func join(_ later: KeyValueStore.Change) {
    isJoined = true
    // The `accountChange` that follows a first sync changes nothing more, and the program must still
    // unite its values with the account's.
    let isOfSignIn =
      reason == .initialSyncChange && later.reason == .accountChange
      && later.items.allSatisfy { $0.old == $0.new }
    if !isOfSignIn { reason = reason.joined(with: later.reason) }
    for item in later.items {
      let key = item.key
      bytes += item.weight - (items[key]?.weight ?? 0)
      let old = items[key].map(\.old) ?? item.old
      if old == item.new && !written.contains(key) {
        items[key] = nil
        bytes -= item.weight
      } else {
        items[key] = KeyValueStore.Change.Item(key: key, old: old, new: item.new)
      }
    }
    superseded.formUnion(later.superseded)
  }
}

extension KeyValueStore.Change.Item {
  fileprivate var weight: Int { 64 + key.size + (new?.weight ?? 0) }
}

extension PropertyListValue {
  /// The approximate number of bytes.
  fileprivate var weight: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .data(let data): data.count
    case .array(let elements): elements.reduce(8) { $0 + $1.weight }
    case .dictionary(let members): members.reduce(8) { $0 + $1.key.utf8.count + $1.value.weight }
    default: 8
    }
  }
}
