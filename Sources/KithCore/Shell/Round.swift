/// All effects that wait, taken together: they become durable in one commit.
///
/// A driver does ``early``, commits ``mutations`` if there are any, and then does ``late``. Joining
/// commits makes an effect later than the replica asked, never earlier.
package struct Round: Sendable {
  /// The effects, in the order in which the replica gave them.
  private var effects: [Effect]
  /// The index of the first `persist`.
  private let first: Int

  init(_ effects: [Effect]) {
    self.effects = effects
    first = effects.firstIndex { if case .persist = $0 { true } else { false } } ?? effects.endIndex
  }

  /// No commit precedes these effects.
  package var early: ArraySlice<Effect> { effects[..<first] }

  /// The commit. Empty: there is none.
  package var mutations: [Mutation] {
    var mutations: [Mutation] = []
    for case .persist(let some) in effects[first...] { mutations += some }
    return mutations
  }

  /// These effects are carried out after the commit. Among them are the `persist`s, which are
  /// passed over.
  package var late: ArraySlice<Effect> { effects[first...] }

  /// The bytes that the effects hold in memory.
  package var byteCount: Int { effects.reduce(0) { $0 + $1.byteCount } }

  /// The writes that its end makes durable.
  var writes: [WriteID] {
    effects.compactMap { if case .durable(let write) = $0 { write } else { nil } }
  }

  /// Reads the change sets that are sent and that the commit itself alters. Called before the commit.
  package mutating func fill(from storage: any ReplicaStorage) throws(StorageError) {
    effects = try effects.filled(from: storage)
  }
}

extension Effect {
  /// The bytes that an effect holds in memory while it waits.
  var byteCount: Int {
    switch self {
    case .send(_, let bytes): bytes.count
    case .sendStored(_, let message): message.byteCount
    case .persist(let mutations):
      mutations.reduce(0) { sum, mutation in
        switch mutation {
        case .putEntry(_, _, _, let box): sum + box.count
        case .putHeader(_, _, let header, let signature): sum + header.count + signature.count
        case .putDraft(_, _, let bytes), .putRefusal(_, _, let bytes), .putRecord(_, let bytes):
          sum + bytes.count
        default: sum
        }
      }
    default: 0
    }
  }
}
