package import KithCore
internal import Synchronization

/// A device's database in memory, with crashes: a commit under way is kept whole or not at all. As
/// in SQLite, a log over a checkpoint: a commit appends one frame, and loading drops the torn frame
/// of a crash. Loading reports a flipped bit, as a row's seal would.
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
    var isCopy: Bool
    var isFull = false
    var isDamaged = false

    mutating func append(_ mutations: [Mutation]) {
      log.append(Frame(mutations: mutations, checksum: mutations.count))
      for mutation in mutations {
        current.apply(mutation)
        if case .put(.incarnation, _) = mutation { isCopy = false }
      }
      if log.count >= SimulatedDisk.checkpointFrames {
        checkpoint = current
        log = []
      }
    }
  }

  private static let checkpointFrames = 64

  private let state: Mutex<State>

  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(checkpoint: snapshot, current: snapshot, isCopy: isCopy))
  }

  /// Whether the disk was made as a copy, and has no new incarnation yet.
  package var isCopy: Bool { state.withLock { $0.isCopy } }

  package var durable: Snapshot { state.withLock { $0.current } }

  package func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// Loading reports damage from now on.
  package func flipBit() { state.withLock { $0.isDamaged = true } }

  /// As in a backup or a cloned directory.
  package func copy(isNoticed: Bool) -> SimulatedDisk {
    SimulatedDisk(durable, isCopy: isNoticed)
  }

  package func outline() throws(StorageError) -> StorageOutline { StorageOutline(try load()) }

  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] {
    state.withLock { state in keys.map { state.current[$0] } }
  }

  package func load() throws(StorageError) -> Snapshot {
    let (isDamaged, snapshot) = state.withLock { state -> (Bool, Snapshot) in
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
  package func commit(_ mutations: [Mutation]) throws(StorageError) {
    let isFull = state.withLock { state in
      if state.isFull { return true }
      state.append(mutations)
      return false
    }
    guard !isFull else {
      throw StorageError(code: .diskFull, path: "simulated", message: "no room is left")
    }
  }

  /// The power fails after `written` mutations reached the disk. If all did, the commit is whole,
  /// but unreported.
  package func crash(writing mutations: [Mutation], written: Int) {
    state.withLock { state in
      if written >= mutations.count, !state.isFull {
        state.append(mutations)
      } else {
        state.log.append(
          Frame(mutations: Array(mutations.prefix(written)), checksum: mutations.count))
      }
    }
  }
}
