package import KithCore
internal import Synchronization

/// The in-memory twin of a device's database, and a model of crashes: committed data is there; a
/// commit under way is there whole or not at all.
///
/// It is a write-ahead log over a checkpoint, as SQLite's. A commit appends one frame with a
/// checksum; a crash leaves a torn frame, which opening leaves out. Now and then the log is
/// checkpointed. A flipped bit is found on loading, as a row's seal finds it.
package final class SimulatedDisk: ReplicaStorage {
  /// One commit in the log.
  private struct Frame {
    var mutations: [Mutation]
    /// Of all mutations; of fewer, the checksum fails.
    var checksum: Int
  }

  private struct State {
    var checkpoint: Snapshot
    var log: [Frame] = []
    /// The state of the log over the checkpoint.
    var current: Snapshot
    var isCopy: Bool
    var isFull = false
    var isDamaged = false

    mutating func append(_ mutations: [Mutation]) {
      log.append(Frame(mutations: mutations, checksum: mutations.count))
      for mutation in mutations {
        current.apply(mutation)
        if case .setIncarnation = mutation { isCopy = false }
      }
      if log.count >= SimulatedDisk.checkpointFrames {
        checkpoint = current
        log = []
      }
    }
  }

  /// Frames until the log is checkpointed.
  private static let checkpointFrames = 64

  private let state: Mutex<State>

  /// A disk that holds a snapshot.
  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(checkpoint: snapshot, current: snapshot, isCopy: isCopy))
  }

  /// Whether it was made as a copy, and has no new incarnation yet.
  package var isCopy: Bool { state.withLock { $0.isCopy } }

  package var durable: Snapshot { state.withLock { $0.current } }

  /// Refuses writes, or accepts them again.
  package func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// Flips a stored bit: loading reports it from now on.
  package func flipBit() { state.withLock { $0.isDamaged = true } }

  /// A copy of the durable data, as in a backup or a cloned directory.
  package func copy(isNoticed: Bool) -> SimulatedDisk {
    SimulatedDisk(durable, isCopy: isNoticed)
  }

  /// All that survives, change sets by name only.
  package func outline() throws(StorageError) -> StorageOutline { StorageOutline(try load()) }

  /// Change sets as they were committed.
  package func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?] {
    state.withLock { state in
      let kept = state.current.stores[store]?.changeSets
      return references.map { kept?[$0] }
    }
  }

  /// All that survives, from checkpoint and log.
  package func load() throws(StorageError) -> Snapshot {
    let (isDamaged, snapshot) = state.withLock { state -> (Bool, Snapshot) in
      var snapshot = state.checkpoint
      var sound = 0
      for frame in state.log where frame.checksum == frame.mutations.count {
        for mutation in frame.mutations { snapshot.apply(mutation) }
        sound += 1
      }
      // Only the last can be torn: a crash ends all writing.
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

  /// Applies mutations durably, all or none.
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

  /// The power fails during `mutations`; the first `written` reach the disk. All of them are a
  /// whole, unreported commit.
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
