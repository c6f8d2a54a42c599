internal import Dispatch
internal import KithCore
internal import Observation
internal import Synchronization

/// The values that one store shows, in memory, its subscribers and its observers. A read waits only for a short
/// lock. Changes are applied whole, so no reader sees an intermediate state.
final class StoreView: Observable, Sendable {
  private struct State {
    var device: DeviceID
    var values: [Key: PropertyListValue] = [:]
    var buffers: [UInt64: ChangeBuffer] = [:]
    var lastNumber: UInt64 = 0
    var isFinished = false
  }

  let identifier: StoreIdentifier
  private let state: Mutex<State>
  private let registrar = ObservationRegistrar()

  init(identifier: StoreIdentifier, device: DeviceID, values: [Key: PropertyListValue]) {
    self.identifier = identifier
    state = Mutex(State(device: device, values: values))
  }

  func value(_ key: String) -> PropertyListValue? {
    let key = Key(key)
    return state.withLock { $0.values[key] }
  }

  /// O(1), copied on write.
  var values: [Key: PropertyListValue] {
    state.withLock { $0.values }
  }

  var owned: (device: DeviceID, values: [Key: PropertyListValue]) {
    state.withLock { ($0.device, $0.values) }
  }

  /// Applies the changes of one step of the core at once; `origin` wrote those without a reason.
  /// `isCallers`: the calling thread made the write, so its observers are called before its write
  /// returns. Returns closures to run unlocked.
  func apply(
    _ changes: [ViewChange], origin: WriteOrigin = .owner, isCallers: Bool = true
  ) -> [() -> Void] {
    let isOwn = isCallers && origin == .owner && changes.allSatisfy { $0.reason == nil }
    return state.withLock { state in
      var later: [() -> Void] = []
      let observed = Set(changes.lazy.flatMap(\.changes).map { Self.pathIndex(of: $0.key) })
      if !observed.isEmpty { later.append { self.callObservers(of: observed, atOnce: isOwn) } }
      for change in changes {
        var items: [KeyValueStore.Change.Item] = []
        items.reserveCapacity(state.buffers.isEmpty ? 0 : change.changes.count)
        if change.changes.count > state.values.count {
          state.values.reserveCapacity(change.changes.count)
        }
        for (key, encoded) in change.changes {
          // The core checked the values when they came in.
          let value = encoded.flatMap { try? $0.decoded() }
          let old = state.values[key]
          state.values[key] = value
          if !state.buffers.isEmpty {
            items.append(KeyValueStore.Change.Item(key: key, old: old, new: value))
          }
        }
        guard !state.buffers.isEmpty, !items.isEmpty || !change.superseded.isEmpty else { continue }
        var offered = KeyValueStore.Change(
          reason: .ownWrite, items: items, superseded: change.superseded)
        for buffer in state.buffers.values {
          offered.reason = change.reason ?? buffer.reason(of: origin)
          if let wake = buffer.offer(offered) { later.append(wake) }
        }
      }
      return later
    }
  }

  /// Replaces the values by a new service's. `superseded` are keys whose writes by this program
  /// were not taken over. Returns closures to run unlocked.
  ///
  /// If the account changed, subscribers get all keys of both accounts, even with equal values
  /// (`Docs/Protocol/drafts.md`, "Adoption"). On signing in (`initialSyncChange`) they get first the
  /// differences and the lost writes, then an `accountChange` of the keys shown so far: a program
  /// that then reads the store again has united its values with the account's before. Otherwise they
  /// get the differences, and writes not taken over as a quota violation.
  func show(
    _ shown: [Key: EncodedValue], of device: DeviceID, reason: ChangeReason,
    superseded: Set<Key>
  ) -> [() -> Void] {
    if reason == .accountChange || reason == .initialSyncChange {
      return replace(
        with: shown.compactMapValues { try? $0.decoded() }, of: device, because: reason,
        superseded: superseded.sorted())
    }
    // The device may be the same, opened by another process.
    state.withLock { $0.device = device }
    var changed = difference(to: shown)
    let undone = ViewChange(
      store: identifier, reason: .quotaViolationChange,
      changes: changed.changes.filter { superseded.contains($0.key) },
      superseded: superseded.sorted())
    changed.changes.removeAll { superseded.contains($0.key) }
    return apply([changed, undone])
  }

  /// Hides all values, because the new service cannot open the store.
  func showNothing(because reason: ChangeReason) {
    let device = state.withLock { $0.device }
    for tell in show([:], of: device, reason: reason, superseded: []) { tell() }
  }

  private func difference(to shown: [Key: EncodedValue]) -> ViewChange {
    let current = values
    var changes: [(key: Key, value: EncodedValue?)] = []
    for (key, encoded) in shown where current[key] != (try? encoded.decoded()) {
      changes.append((key, encoded))
    }
    for key in current.keys where shown[key] == nil { changes.append((key, nil)) }
    changes.sort { $0.key < $1.key }
    return ViewChange(store: identifier, reason: .externalChange, changes: changes)
  }

  private func replace(
    with values: [Key: PropertyListValue], of device: DeviceID, because reason: ChangeReason,
    superseded: [Key]
  ) -> [() -> Void] {
    state.withLock { state in
      let old = state.values
      state.device = device
      state.values = values
      let observers = { self.callObservers(of: Set(0..<Self.pathCount), atOnce: false) }
      guard !state.buffers.isEmpty else { return [observers] }
      func items(
        _ keys: some Sequence<Key>, since old: [Key: PropertyListValue]
      ) -> [KeyValueStore.Change.Item] {
        keys.sorted().map { KeyValueStore.Change.Item(key: $0, old: old[$0], new: values[$0]) }
      }
      let both = Set(old.keys).union(values.keys)
      let offered =
        reason == .accountChange
        ? [
          KeyValueStore.Change(
            reason: reason, items: items(both, since: old), superseded: superseded)
        ]
        : [
          KeyValueStore.Change(
            reason: reason, items: items(both.filter { old[$0] != values[$0] }, since: old),
            superseded: superseded),
          KeyValueStore.Change(
            reason: .accountChange, items: items(old.keys, since: values), superseded: []),
        ]
      let wakes = offered.filter { !$0.items.isEmpty || !$0.superseded.isEmpty }.flatMap { change in
        state.buffers.values.map { $0.offer(change) }
      }
      return wakes.compactMap(\.self) + [observers]
    }
  }

  /// `limit`: from so many waiting changes on, later ones are joined.
  func subscribe(
    seesOwnWrites: Bool, own: WriteOrigin? = .owner, limit: Int = ChangeBuffer.limit,
    onOffer: (@Sendable () -> Void)? = nil
  ) -> (values: [Key: PropertyListValue], changes: StoreChanges) {
    let buffer = ChangeBuffer(
      seesOwnWrites: seesOwnWrites, own: own, limit: limit, onOffer: onOffer)
    let (values, number) = subscribe(buffer)
    let subscription = StoreChanges.Subscription(buffer: buffer, view: self, number: number)
    return (values, StoreChanges(subscription: subscription))
  }

  func subscribe(_ buffer: ChangeBuffer) -> (values: [Key: PropertyListValue], number: UInt64) {
    state.withLock { state in
      state.lastNumber += 1
      if state.isFinished {
        buffer.finish()
      } else {
        state.buffers[state.lastNumber] = buffer
      }
      return (state.values, state.lastNumber)
    }
  }

  /// Takes the waiting changes: whole steps of the core, because they are offered under this lock.
  func takeAll(from buffer: ChangeBuffer) -> [KeyValueStore.Change] {
    state.withLock { _ in buffer.takeAll() }
  }

  func unsubscribe(_ number: UInt64) {
    state.withLock { _ = $0.buffers.removeValue(forKey: number) }
  }

  func finish() {
    let buffers = state.withLock { state in
      state.isFinished = true
      defer { state.buffers = [:] }
      return Array(state.buffers.values)
    }
    for buffer in buffers { buffer.finish() }
  }
}

/// Observation. A key path of its own for each key would make every read fifteen times as slow, so
/// keys share a fixed number of them, by a hash.
extension StoreView {
  /// The keys that share a key path are so few that an observer is seldom called in vain.
  private static let pathCount = 256
  private static let paths: [any KeyPath<StoreView, Bool> & Sendable] = (0..<pathCount).map {
    \StoreView.[path: $0]
  }
  /// Observers of changes by others may block it, but neither the engine nor the network.
  private static let queue = DispatchQueue(label: "kith.observers")

  private subscript(path path: Int) -> Bool { false }
  private var all: Bool { false }

  /// FNV-1a, the same in each process.
  private static func pathIndex(of key: Key) -> Int {
    let hash = key.text.utf8.reduce(2_166_136_261 as UInt32) { ($0 ^ UInt32($1)) &* 16_777_619 }
    return Int(hash ^ hash >> 16) & (pathCount - 1)
  }

  /// As ``value(_:)``, for a reader whom `withObservationTracking` may observe.
  func observedValue(_ text: String) -> PropertyListValue? {
    let key = Key(text)
    registrar.access(self, keyPath: Self.paths[Self.pathIndex(of: key)])
    return state.withLock { $0.values[key] }
  }

  /// As ``values``, observed.
  var observedValues: [Key: PropertyListValue] {
    registrar.access(self, keyPath: \.all)
    return values
  }

  /// Called after the change.
  private func callObservers(of indices: Set<Int>, atOnce: Bool) {
    guard atOnce else { return Self.queue.async { self.callObservers(of: indices, atOnce: true) } }
    for index in indices { registrar.withMutation(of: self, keyPath: Self.paths[index]) {} }
    registrar.withMutation(of: self, keyPath: \.all) {}
  }
}
