internal import KithCore
internal import Synchronization

/// The changes that one consumer has not taken yet: at most ``limit`` changes and
/// ``bytesLimit`` bytes.
///
/// If the buffer is full, a new change is joined with the last one in it, and nothing is dropped.
/// Each key keeps the value from before the first change and gets the value after the last one. So
/// a consumer that replays the changes over the old view always gets the new view. A small change
/// never waits for more bytes than the limit and one view.
///
/// A consumer that does not see its own writes has applied them already. Each own write therefore
/// updates the waiting changes of its keys.
final class ChangeBuffer: Sendable {
  /// The maximum number of waiting changes.
  static let limit = 64
  /// The maximum number of bytes in waiting values. Beyond it, later changes are joined.
  static let bytesLimit = 1 << 20

  private struct State {
    var waiting: [PendingChange] = []
    /// The consumer that waits for a change. It takes the change itself once it runs; until then
    /// own writes still update the change.
    var consumer: CheckedContinuation<Void, Never>?
    var isFinished = false
  }

  private let state = Mutex(State())
  private let seesOwnWrites: Bool
  /// The program whose writes count as own writes.
  let perspective: Perspective
  /// Called at each change and at the end, for a consumer that is no task.
  private let onOffer: (@Sendable () -> Void)?

  init(
    seesOwnWrites: Bool, perspective: Perspective = .program(.owner),
    onOffer: (@Sendable () -> Void)? = nil
  ) {
    self.seesOwnWrites = seesOwnWrites
    self.perspective = perspective
    self.onOffer = onOffer
  }

  /// Whether the sequence has ended.
  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Whether a consumer is waiting.
  var isAwaited: Bool { state.withLock { $0.consumer != nil } }

  /// Adds a change, and returns a closure to run after the lock is released.
  func offer(_ change: KeyValueStore.Change) -> (() -> Void)? {
    state.withLock { state -> (() -> Void)? in
      guard !state.isFinished else { return nil }
      if change.reason == .ownWrite && !seesOwnWrites {
        for index in state.waiting.indices { state.waiting[index].updateOwnWrite(change) }
        return nil
      }
      let bytes = state.waiting.reduce(0) { $0 + $1.bytes }
      if state.waiting.isEmpty || state.waiting.count < Self.limit && bytes < Self.bytesLimit {
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

  /// Takes all waiting changes.
  func takeAll() -> [KeyValueStore.Change] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting.map(\.change)
    }
  }

  /// Returns the next change, or nil at the end, on cancellation, or if another consumer is
  /// waiting already.
  ///
  /// The change is taken on the consumer's actor, so no write of that actor can come in between.
  func next(isolation actor: isolated (any Actor)? = #isolation) async -> KeyValueStore.Change? {
    while !Task.isCancelled {
      let ready: KeyValueStore.Change?? = state.withLock { state in
        if !state.waiting.isEmpty { return .some(state.waiting.removeFirst().change) }
        return state.isFinished || state.consumer != nil ? .some(nil) : nil
      }
      if let ready { return ready }
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

  /// Ends the sequence after the waiting changes are taken.
  func finish() {
    let consumer = state.withLock { state in
      state.isFinished = true
      return state.consumer.take()
    }
    consumer?.resume()
    onOffer?()
  }
}

/// A change that its consumer has not taken yet.
struct PendingChange {
  private var reason: ChangeReason
  private var items: [Key: KeyValueStore.Change.Item]
  private var superseded: Set<Key>
  private var isJoined: Bool
  /// The approximate size of the values.
  private(set) var bytes = 0
  /// Keys that the program has written since. Joining keeps them, because the program no longer
  /// shows the value that the change started from.
  private var written: Set<Key> = []

  init(_ change: KeyValueStore.Change) {
    reason = change.reason
    items = Dictionary(change.items.map { (Key($0.key), $0) }) { _, later in later }
    superseded = Set(change.superseded.map { Key($0) })
    isJoined = change.isJoined
    bytes = change.items.reduce(0) { $0 + $1.weight }
  }

  /// The change as the consumer receives it.
  var change: KeyValueStore.Change {
    KeyValueStore.Change(
      reason: reason, items: items.sorted { $0.key < $1.key }.map(\.value),
      superseded: superseded.sorted().map(\.text), isJoined: isJoined)
  }

  /// Updates the keys that the program wrote itself.
  mutating func updateOwnWrite(_ change: KeyValueStore.Change) {
    for item in change.items {
      let key = Key(item.key)
      guard let waiting = items[key] else { continue }
      bytes += item.weight - waiting.weight
      items[key]?.new = item.new
      written.insert(key)
    }
  }

  /// Joins a later change. A key that shows its first value again is left out, so the change never
  /// has more keys than the old and the new view.
  mutating func join(_ later: KeyValueStore.Change) {
    isJoined = true
    reason = reason.joined(with: later.reason)
    for item in later.items {
      let key = Key(item.key)
      bytes += item.weight - (items[key]?.weight ?? 0)
      let old = items[key].map(\.old) ?? item.old
      if old == item.new && !written.contains(key) {
        items[key] = nil
        bytes -= item.weight
      } else {
        items[key] = KeyValueStore.Change.Item(key: item.key, old: old, new: item.new)
      }
    }
    superseded.formUnion(later.superseded.map { Key($0) })
  }
}

extension KeyValueStore.Change.Item {
  /// The approximate size of the item for its consumer.
  fileprivate var weight: Int { 64 + key.utf8.count + (new?.weight ?? 0) }
}

extension PropertyListValue {
  /// The approximate size of the value.
  ///
  /// - Complexity: O(*n*) in the values that it holds.
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
