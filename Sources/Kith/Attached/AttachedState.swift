internal import KithCore

/// What an attached program shows: what the node shows, with the program's unanswered writes laid
/// over it. A value: whoever holds it applies the changes that its methods return to the view.
///
/// The node answers writes in their order, and sends every change up to a write's own before the
/// write's answer. So with the answer the write is part of what the node shows, or was overwritten
/// there, and nothing is laid over it any more.
struct AttachedState {
  /// A write that was not answered.
  private struct Unanswered {
    var id: UInt64
    var bytes: Int
    var since: SuspendingClock.Instant
    var write: PendingWrite
  }

  private struct Cover {
    /// The last write of the key.
    var id: UInt64
    var value: EncodedValue?
    /// Why the node shows something else under it than before.
    var reason: ChangeReason?
  }

  private let store: StoreIdentifier
  /// What the node shows.
  private var base: [Key: EncodedValue]
  /// What is laid over it.
  private var covers: [Key: Cover] = [:]
  /// Sizes of what is shown, to refuse what does not fit.
  private var trial: TrialStore
  /// In order; those before ``head`` are answered.
  private var queue: [Unanswered] = []
  private var head = 0
  /// Bytes of lines that were not answered.
  private(set) var unansweredBytes = 0
  /// How many writes were ever taken, and how many answered.
  private(set) var written: UInt64 = 0
  private(set) var answered: UInt64 = 0

  /// A state that shows what the node does.
  init(store: StoreIdentifier, policy: Policy, values: [(key: Key, value: EncodedValue?)]) {
    self.store = store
    base = [:]
    base.reserveCapacity(values.count)
    trial = TrialStore(policy: policy)
    for (key, value) in values {
      base[key] = value
      trial.show(key, size: value?.size)
    }
  }

  /// What is in use of what is shown, and the limits.
  var usage: Usage { trial.usage }

  /// The writes that were not answered, in order.
  var pending: [PendingWrite] { queue[head...].map(\.write) }

  /// What a key shows.
  private func shown(_ key: Key) -> EncodedValue? {
    if let cover = covers[key] { cover.value } else { base[key] }
  }

  /// All that is shown.
  var shown: [Key: EncodedValue] {
    var shown = base
    for (key, cover) in covers { shown[key] = cover.value }
    return shown
  }

  // MARK: Writing

  /// Lays a write over what is shown.
  ///
  /// - Parameters:
  ///   - write: The write.
  ///   - id: Under which the node will answer it.
  ///   - bytes: The bytes of its line.
  ///   - now: Since when it waits.
  /// - Returns: What it changes.
  /// - Throws: ``KithError`` where it breaks a limit; nothing has changed then.
  mutating func write(
    _ write: PendingWrite, id: UInt64, bytes: Int, at now: SuspendingClock.Instant
  ) throws(KithError) -> ViewChange {
    try trial.write(write.operations)
    var before: [Key: EncodedValue?] = [:]
    for operation in write.operations {
      let key = Key(operation.key)
      if before[key] == nil { before.updateValue(shown(key), forKey: key) }
      covers[key] = Cover(id: id, value: operation.value, reason: covers[key]?.reason)
    }
    queue.append(Unanswered(id: id, bytes: bytes, since: now, write: write))
    unansweredBytes += bytes
    written += 1
    return ViewChange(
      store: store, reason: nil,
      changes: before.filter { $0.value != shown($0.key) }.keys.sorted().map { ($0, shown($0)) })
  }

  // MARK: What the node says

  /// Takes in what the node tells to be shown at once.
  ///
  /// - Returns: What it changes of what is shown.
  mutating func take(_ changes: [NodeChange]) -> [ViewChange] {
    var told: [ViewChange] = []
    for change in changes {
      // An own write without a cover cannot be, but for a node that breaks the protocol.
      var visible = ViewChange(
        store: store, reason: change.reason ?? .serverChange, changes: [],
        superseded: change.superseded)
      for (key, value) in change.values where base[key] != value {
        base[key] = value
        if let cover = covers[key] {
          covers[key]?.reason = change.reason?.joined(with: cover.reason) ?? cover.reason
        } else {
          trial.show(key, size: value?.size)
          visible.changes.append((key, value))
        }
      }
      if !visible.changes.isEmpty || !visible.superseded.isEmpty { told.append(visible) }
    }
    return told
  }

  /// Takes in the answer to the oldest unanswered write; what it covered shows again.
  ///
  /// - Parameters:
  ///   - id: The write's.
  ///   - error: Why it was refused.
  /// - Returns: The write, to be settled, and what changes; nil: the answer is to another write.
  mutating func answer(
    _ id: UInt64, error: KithError?
  ) -> (write: PendingWrite, changes: [ViewChange])? {
    guard head < queue.count, queue[head].id == id else { return nil }
    let write = queue[head].write
    unansweredBytes -= queue[head].bytes
    answered += 1
    head += 1
    if head == queue.count || head >= 1_024 {
      queue.removeFirst(head)
      head = 0
    }
    let keys = Set(write.operations.map { Key($0.key) }).sorted()
    let refusal = error.map(\.changeReason)
    var changes: [ChangeReason: [(key: Key, value: EncodedValue?)]] = [:]
    for key in keys {
      guard let cover = covers[key], cover.id == id else { continue }
      covers[key] = nil
      let value = base[key]
      guard value != cover.value else { continue }
      trial.show(key, size: value?.size)
      changes[refusal ?? cover.reason ?? .serverChange, default: []].append((key, value))
    }
    if let refusal { changes[refusal, default: []] += [] }
    let told = changes.sorted { Change.Reason($0.key).rawValue < Change.Reason($1.key).rawValue }
    return (
      write,
      told.map {
        ViewChange(
          store: store, reason: $0.key, changes: $0.value,
          superseded: $0.key == refusal ? keys : [])
      }
    )
  }

  /// Lets go of those who have waited for answers since before an instant, or of all.
  mutating func takeWaiters(since: SuspendingClock.Instant?) -> [PendingWrite.Waiter] {
    var waiters: [PendingWrite.Waiter] = []
    for index in queue.indices[head...] {
      if let since, queue[index].since >= since { break }
      if let waiter = queue[index].write.takeWaiter() { waiters.append(waiter) }
    }
    return waiters
  }

  /// Gives away the writes that were not answered. What they show stays.
  mutating func takePending() -> [PendingWrite] {
    defer {
      queue = []
      head = 0
      unansweredBytes = 0
    }
    return pending
  }
}

extension KithError {
  /// Whether the node refused a write because of what it is, not because its disk failed.
  var isRefusal: Bool {
    switch code {
    case .invalidKey, .valueTooLarge, .quotaExceeded, .unsupportedValue, .tooManyDrafts,
      .refusalsNotTaken:
      true
    default: false
    }
  }

  /// Why what was shown is undone.
  fileprivate var changeReason: ChangeReason { isRefusal ? .quotaViolationChange : .serverChange }
}
