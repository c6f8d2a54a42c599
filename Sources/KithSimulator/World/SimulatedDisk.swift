package import KithCore
internal import Synchronization

/// The in-memory twin of a device's database, with a model of what a crash leaves: what was
/// committed is there, what was being committed is there whole or not at all, however much of it
/// had been written.
///
/// It is a write-ahead log over a checkpoint, as SQLite's is: a commit appends one frame with a
/// checksum; a crash in the middle leaves a torn frame, which opening finds by its checksum and
/// leaves out. Now and then the log is checkpointed. A bit that flips in what is kept is found on
/// loading, as the seal of a row finds it.
package final class SimulatedDisk: ReplicaStorage {
  /// One commit in the log.
  private struct Frame {
    var mutations: [Mutation]
    /// Of all mutations; of fewer, the checksum does not hold.
    var checksum: Int
  }

  private struct State {
    var checkpoint: Snapshot
    var log: [Frame] = []
    /// What the log over the checkpoint comes to.
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

  /// Frames after which the log is checkpointed.
  private static let checkpointFrames = 64

  private let state: Mutex<State>

  /// A disk that holds a snapshot.
  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(checkpoint: snapshot, current: snapshot, isCopy: isCopy))
  }

  /// Whether it was made as a copy, and no new incarnation has been committed since.
  package var isCopy: Bool { state.withLock { $0.isCopy } }

  /// What is durable now.
  package var durable: Snapshot { state.withLock { $0.current } }

  /// Takes no more, or does again.
  package func setFull(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }

  /// A bit of what is kept flips: loading says so from here on.
  package func flipBit() { state.withLock { $0.isDamaged = true } }

  /// A copy of what is durable, as a backup or a cloned directory has it.
  package func copy(isNoticed: Bool) -> SimulatedDisk {
    SimulatedDisk(durable, isCopy: isNoticed)
  }

  /// Everything that survives, change sets by name only.
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

  /// Everything that survives, read from the checkpoint and the log.
  package func load() throws(StorageError) -> Snapshot {
    let (isDamaged, snapshot) = state.withLock { state -> (Bool, Snapshot) in
      var snapshot = state.checkpoint
      var sound = 0
      for frame in state.log where frame.checksum == frame.mutations.count {
        for mutation in frame.mutations { snapshot.apply(mutation) }
        sound += 1
      }
      // Only the last can be torn: nothing is written after a crash before this.
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

  /// Applies mutations durably, together or not at all.
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

  /// The power goes while `mutations` are written, of which only the first `written` reach the disk.
  /// All of them are a whole commit that nobody was told of.
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
