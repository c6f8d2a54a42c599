package import KithCore
internal import Synchronization

/// A device's database in memory, with crashes: a commit under way is kept whole or not at all. As
/// in SQLite, a log over a checkpoint: a commit appends one frame, and loading drops the torn frame
/// of a crash. A frame that is written survives a crash of the process; only one that is synced
/// survives a crash of the host. Loading reports a flipped bit, as a row's seal would.
package final class SimulatedDisk: ReplicaStorage {
  private struct Frame {
    var mutations: [Mutation]
    /// The number of mutations of the whole commit; a torn frame has fewer.
    var checksum: Int
  }

  private struct State {
    var checkpoint: Snapshot
    var log: [Frame] = []
    var current: Snapshot
    /// The content before the last frame, if that is not synced.
    var unsynced: (before: Snapshot, wasCopy: Bool)?
    var isCopy: Bool
    var isFull = false
    var isDamaged = false

    mutating func write(_ mutations: [Mutation]) {
      sync()
      unsynced = (current, isCopy)
      log.append(Frame(mutations: mutations, checksum: mutations.count))
      for mutation in mutations {
        current.apply(mutation)
        if case .put(.incarnation, _) = mutation { isCopy = false }
      }
    }

    mutating func sync() {
      unsynced = nil
      if log.count >= SimulatedDisk.checkpointFrames {
        checkpoint = current
        log = []
      }
    }

    mutating func losesWritten() {
      guard let lost = unsynced.take() else { return }
      (current, isCopy) = (lost.before, lost.wasCopy)
      log.removeLast()
    }
  }

  private static let checkpointFrames = 64

  private let state: Mutex<State>

  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(checkpoint: snapshot, current: snapshot, isCopy: isCopy))
  }

  /// Whether the disk was made as a copy, and has no new incarnation yet.
  package var isCopy: Bool { state.withLock { $0.isCopy } }

  /// The rows that a crash of the host leaves.
  package var durable: Snapshot { state.withLock { $0.unsynced?.before ?? $0.current } }

  /// The rows that a crash of the process leaves.
  package var written: Snapshot { state.withLock { $0.current } }

  package func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// Loading reports damage from now on.
  package func flipBit() { state.withLock { $0.isDamaged = true } }

  /// As in a backup or a cloned directory.
  package func copy(isNoticed: Bool) -> SimulatedDisk {
    SimulatedDisk(written, isCopy: isNoticed)
  }

  package func outline() throws(StorageError) -> StorageOutline { StorageOutline(try load()) }

  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] {
    state.withLock { state in keys.map { state.current[$0] } }
  }

  /// Syncs what the process before wrote, as the commit of an opening does.
  package func load() throws(StorageError) -> Snapshot {
    let (isDamaged, snapshot) = state.withLock { state -> (Bool, Snapshot) in
      state.unsynced = nil
      var snapshot = state.checkpoint
      var sound = 0
      for frame in state.log where frame.checksum == frame.mutations.count {
        for mutation in frame.mutations { snapshot.apply(mutation) }
        sound += 1
      }
      // Only the last frame can be torn: a crash ends all writing.
      precondition(sound >= state.log.count - 1)
      state.log.removeAll { $0.checksum != $0.mutations.count }
      state.current = snapshot
      return (state.isDamaged, snapshot)
    }
    guard !isDamaged else {
      throw StorageError(
        code: .damaged, path: "simulated", message: "a row does not open; restore a copy")
    }
    return snapshot
  }

  /// All or none.
  package func commit(
    _ mutations: [Mutation], written: @Sendable () -> Void
  ) throws(StorageError) {
    try write(mutations)
    written()
    try sync(fails: false)
  }

  /// All or none. The operating system has the mutations.
  package func write(_ mutations: [Mutation]) throws(StorageError) {
    let isFull = state.withLock { state in
      if state.isFull { return true }
      state.write(mutations)
      return false
    }
    if isFull { throw Self.full }
  }

  /// The disk has what was written. It `fails`, or the disk has filled since, as some file systems
  /// notice only now: then nothing was written, but a backup of that moment may have it.
  package func sync(fails: Bool) throws(StorageError) {
    let isFull = state.withLock { state in
      guard state.isFull || fails else {
        state.sync()
        return false
      }
      state.losesWritten()
      state.isCopy = true
      return true
    }
    if isFull { throw Self.full }
  }

  private static let full = StorageError(
    code: .diskFull, path: "simulated", message: "no space is left")

  /// The process ends after `written` mutations reached the operating system. If all did, the commit
  /// is whole, but unreported.
  package func crash(writing mutations: [Mutation], written: Int) {
    state.withLock { state in
      if written >= mutations.count, !state.isFull {
        state.write(mutations)
        state.sync()
      } else {
        state.log.append(
          Frame(mutations: Array(mutations.prefix(written)), checksum: mutations.count))
      }
    }
  }

  /// The host ends. Of a commit that is not synced, so many mutations reached the disk.
  package func crashHost(keeping written: Int) {
    state.withLock { state in
      guard state.unsynced != nil, let last = state.log.last, written < last.mutations.count else {
        return state.sync()
      }
      state.losesWritten()
      state.log.append(
        Frame(mutations: Array(last.mutations.prefix(written)), checksum: last.mutations.count))
    }
  }

  /// The mutations that are written and not synced.
  package var unsyncedCount: Int {
    state.withLock { $0.unsynced == nil ? 0 : $0.log.last?.mutations.count ?? 0 }
  }
}
