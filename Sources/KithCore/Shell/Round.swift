/// All waiting effects, which one commit makes durable.
///
/// A driver does ``early``, commits ``mutations`` if there are any, then does ``late``. Joining
/// commits makes an effect later than the replica asked, never earlier.
package struct Round: Sendable {
  private var effects: [Effect]
  /// The index of the first `persist`.
  private let first: Int

  init(_ effects: [Effect]) {
    self.effects = effects
    first = effects.firstIndex { if case .persist = $0 { true } else { false } } ?? effects.endIndex
  }

  /// Effects that need no commit.
  package var early: ArraySlice<Effect> { effects[..<first] }

  /// Empty if there is nothing to commit.
  package var mutations: [Mutation] {
    var mutations: [Mutation] = []
    for case .persist(let some) in effects[first...] { mutations += some }
    return mutations
  }

  /// Effects after the commit; skip the `persist`s.
  package var late: ArraySlice<Effect> { effects[first...] }

  package var byteCount: Int { effects.reduce(0) { $0 + $1.byteCount } }

  var writes: [WriteID] {
    effects.compactMap { if case .durable(let write) = $0 { write } else { nil } }
  }

  /// Reads sent change sets that the commit itself alters. Call it before the commit.
  package mutating func fill(from storage: any ReplicaStorage) throws(StorageError) {
    effects = try effects.filled(from: storage)
  }
}

extension Effect {
  /// Bytes held in memory while it waits.
  var byteCount: Int {
    switch self {
    case .send(_, let bytes): bytes.count
    case .sendStored(_, let message): message.byteCount
    case .carrier(_, .put(let object)): object.byteCount
    case .persist(let mutations):
      mutations.reduce(0) { sum, mutation in
        switch mutation {
        case .putEntry(_, _, _, let box): sum + box.count
        case .putHeader(_, _, let header, let signature): sum + header.count + signature.count
        case .putDraft(_, _, let bytes), .putRefusal(_, _, let bytes),
          .putPastValue(_, _, let bytes), .putRecord(_, let bytes), .putObject(_, _, let bytes):
          sum + bytes.count
        default: sum
        }
      }
    default: 0
    }
  }
}
