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

  package var weight: Int { effects.reduce(0) { $0 + $1.weight } }

  var writes: [WriteID] {
    effects.compactMap { if case .durable(let write) = $0 { write } else { nil } }
  }

  /// Reads sent change sets that the commit itself alters. Call it before the commit.
  package mutating func fill(from storage: any ReplicaStorage) throws(StorageError) {
    effects = try effects.filled(from: storage)
  }
}

extension Effect {
  /// Bytes that count while it waits: those that it holds, and ``Limits/overheadBytes``. No effect is
  /// free, because each takes time of the thread that carries it out, and a peer can cause many.
  var weight: Int {
    let held =
      switch self {
      case .persist(let mutations): mutations.reduce(0) { $0 + $1.weight }
      case .send(_, let bytes): bytes.count
      case .sendStored(_, let batch): batch.byteCount
      case .carrier(_, .put(let object)): object.byteCount
      case .carrier(_, .get(let names)), .carrier(_, .delete(let names)):
        names.count * Limits.overheadBytes
      case .view(let change):
        change.changes.reduce(0) { $0 + Limits.overheadBytes + ($1.value?.bytes.count ?? 0) }
      case .addresses(let all): all.values.reduce(0) { $0 + Limits.weight(ofAddresses: $1) }
      case .leftBehind(let devices): devices.count * Limits.overheadBytes
      case .carrier(_, .list), .carrier(_, .rest), .awaitRoom, .promote, .close, .accepted,
        .refused,
        .refusedStore, .refusedMembership, .durable, .pulledAll, .progress, .wake, .report:
        0
      }
    return Limits.overheadBytes + held
  }
}

extension Mutation {
  /// As of an ``Effect``; a commit writes at least a row for it.
  var weight: Int {
    switch self {
    case .put(_, let bytes): Limits.overheadBytes + bytes.count
    case .remove: Limits.overheadBytes
    }
  }
}

extension Limits {
  /// Each address takes a row and an attempt to connect.
  fileprivate static func weight(ofAddresses addresses: [String]) -> Int {
    addresses.reduce(0) { $0 + overheadBytes + $1.utf8.count }
  }
}
