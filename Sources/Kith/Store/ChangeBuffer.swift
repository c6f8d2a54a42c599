internal import KithCore
internal import Synchronization

/// The changes that one consumer has not taken yet, at most ``limit``, of ``bytesLimit``.
///
/// The rule of overflow: a change that finds the buffer full is joined with the last one in it, so
/// nothing is dropped: each key keeps what it showed before the first and gets what it shows after
/// the last. So replaying what is taken over the old view always gives the new view. And a small
/// change never waits for more bytes than the limit and one view.
///
/// A consumer that does not see its own writes has applied them already when they happened. A
/// change still waiting is therefore brought up to date with every own write of its keys.
final class ChangeBuffer: Sendable {
  /// The most changes that wait.
  static let limit = 64
  /// The most bytes of their values before later ones are joined.
  static let bytesLimit = 1 << 20

  private struct State {
    var waiting: [PendingChange] = []
    /// Who waits for something to be there. What there is, it takes itself once it runs: until then
    /// own writes still bring it up to date.
    var consumer: CheckedContinuation<Void, Never>?
    var isFinished = false
  }

  private let state = Mutex(State())
  private let seesOwnWrites: Bool
  /// Whose writes are its own.
  let perspective: Perspective
  /// Raised when something has come or nothing more will, for who waits for other things too.
  private let signal: Signal?

  init(
    seesOwnWrites: Bool, perspective: Perspective = .program(.owner), raising signal: Signal? = nil
  ) {
    self.seesOwnWrites = seesOwnWrites
    self.perspective = perspective
    self.signal = signal
  }

  /// Whether nothing more comes.
  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Whether a consumer waits.
  var isAwaited: Bool { state.withLock { $0.consumer != nil } }

  /// Takes in a change and returns what to run once no lock is held.
  func offer(_ change: Change) -> (() -> Void)? {
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
      guard consumer != nil || signal != nil else { return nil }
      return {
        consumer?.resume()
        self.signal?.raise()
      }
    }
  }

  /// All that waits.
  func takeAll() -> [Change] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting.map(\.change)
    }
  }

  /// The next change; nil once finished or cancelled, and where another consumer waits already.
  ///
  /// It is taken where the consumer runs, so nothing that the consumer's actor writes can come
  /// between.
  func next(isolation actor: isolated (any Actor)? = #isolation) async -> Change? {
    while !Task.isCancelled {
      let ready: Change?? = state.withLock { state in
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

  /// Ends the sequence once what waits is taken.
  func finish() {
    let consumer = state.withLock { state in
      state.isFinished = true
      return state.consumer.take()
    }
    consumer?.resume()
    signal?.raise()
  }
}

/// A change that was not taken yet.
struct PendingChange {
  private var reason: Change.Reason
  private var items: [Key: Change.Item]
  private var superseded: Set<Key>
  private var isJoined: Bool
  /// About how many bytes the values take.
  private(set) var bytes = 0
  /// Keys that the program wrote itself meanwhile: joining must not drop them, since the program
  /// does not show what the change started from any more.
  private var written: Set<Key> = []

  init(_ change: Change) {
    reason = change.reason
    items = Dictionary(change.items.map { (Key($0.key), $0) }) { _, later in later }
    superseded = Set(change.superseded.map { Key($0) })
    isJoined = change.isJoined
    bytes = change.items.reduce(0) { $0 + $1.weight }
  }

  /// The change as its consumer gets it.
  var change: Change {
    Change(
      reason: reason, items: items.sorted { $0.key < $1.key }.map(\.value),
      superseded: superseded.sorted().map(\.text), isJoined: isJoined)
  }

  /// Brings keys that the program wrote itself up to date.
  mutating func updateOwnWrite(_ change: Change) {
    for item in change.items {
      let key = Key(item.key)
      guard let waiting = items[key] else { continue }
      bytes += item.weight - waiting.weight
      items[key]?.new = item.new
      written.insert(key)
    }
  }

  /// Joins a later change. A key that shows again what it showed at first is left out, so the
  /// change never grows beyond the keys of the old and the new view.
  mutating func join(_ later: Change) {
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
        items[key] = Change.Item(key: item.key, old: old, new: item.new)
      }
    }
    superseded.formUnion(later.superseded.map { Key($0) })
  }
}

extension Change.Item {
  /// About how many bytes it takes on its way to a consumer.
  fileprivate var weight: Int { 64 + key.utf8.count + (new?.weight ?? 0) }
}

extension PropertyListValue {
  /// About how many bytes it takes.
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
