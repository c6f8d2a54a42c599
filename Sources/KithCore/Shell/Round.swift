/// All waiting effects, which one commit makes durable.
///
/// A driver does ``beforeCommit``, commits ``mutations`` if there are any, then does
/// ``afterCommit``. Joining commits makes an effect later than the replica asked, never earlier.
/// Once the mutations are written, and survive the end of the process, it may do ``earlySends``
/// while they are synced.
package struct Round: Sendable {
  private var effects: [Effect]
  /// The index of the first `persist`.
  private let first: Int
  /// Messages that need no sync. If the driver could not send them before, it does
  /// before ``afterCommit``.
  package private(set) var earlySends: [Effect] = []

  init(_ effects: [Effect]) {
    first = effects.firstIndex { if case .persist = $0 { true } else { false } } ?? effects.endIndex
    self.effects = Array(effects[..<first])
    let mayGoEarly = effects[first...].allSatisfy { effect in
      guard case .persist(let mutations) = effect else { return true }
      return mutations.allSatisfy(\.key.isOfChangeSets)
    }
    // Nothing overtakes on its session.
    var waiting = Set<SessionID>()
    for effect in effects[first...] {
      guard case .sendEarly(let session, _) = effect else {
        if let session = effect.session { waiting.insert(session) }
        self.effects.append(effect)
        continue
      }
      if mayGoEarly, !waiting.contains(session) {
        earlySends.append(effect)
      } else {
        waiting.insert(session)
        self.effects.append(effect)
      }
    }
  }

  /// Effects that need no commit.
  package var beforeCommit: ArraySlice<Effect> { effects[..<first] }

  /// Empty if there is nothing to commit.
  package var mutations: [Mutation] {
    var mutations: [Mutation] = []
    for case .persist(let some) in effects[first...] { mutations += some }
    return mutations
  }

  /// Effects after the commit; skip the `persist`s.
  package var afterCommit: ArraySlice<Effect> { effects[first...] }

  /// Whether ``earlySends`` has change sets of this device: their numbers must not be given again if
  /// the sync fails. Those of others come again.
  package func sendsEarly(of device: DeviceID) -> Bool {
    !earlySends.isEmpty
      && mutations.contains { mutation in
        guard case .put(.store(_, .changeSet(let reference)), _) = mutation else { return false }
        return reference.device == device
      }
  }

  package var weight: Int { (effects + earlySends).reduce(0) { $0 + $1.weight } }

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
      case .send(_, let bytes), .sendEarly(_, let bytes): bytes.count
      case .sendStored(_, let batch): batch.byteCount
      case .carrier(_, .put(let object)): object.byteCount
      case .carrier(_, .get(let names)), .carrier(_, .delete(let names)):
        names.count * Limits.overheadBytes
      case .view(let change):
        change.changes.reduce(0) { $0 + Limits.overheadBytes + ($1.value?.bytes.count ?? 0) }
      case .addresses(let all): all.values.reduce(0) { $0 + Limits.weight(ofAddresses: $1) }
      case .leftBehind(let devices): devices.count * Limits.overheadBytes
      case .carrier(_, .list), .carrier(_, .rest), .awaitDrain, .promote, .close, .accepted,
        .refused,
        .refusedStore, .refusedMembership, .durable, .pulledAll, .progress, .wake, .report:
        0
      }
    return Limits.overheadBytes + held
  }
}

extension Effect {
  /// The session whose messages it stands between.
  fileprivate var session: SessionID? {
    switch self {
    case .send(let session, _), .sendEarly(let session, _), .sendStored(let session, _),
      .awaitDrain(let session), .promote(let session), .close(let session, _),
      .pulledAll(let session):
      session
    default: nil
    }
  }
}

extension RowKey {
  /// Whether peers may learn of a change of the row before it is durable. All other rows have
  /// something that the messages of a round may rest on: an incarnation or its mark, records, limits,
  /// a horizon.
  fileprivate var isOfChangeSets: Bool {
    switch self {
    case .clock, .addresses, .object: true
    case .store(_, let key):
      switch key {
      case .vector, .changeSet, .entry, .draft, .refusal, .pastValue: true
      case .policy, .adopted, .opened, .lost, .loss, .horizon: false
      }
    case .incarnation, .earlySending, .keepsHistory, .record, .storage, .damaged: false
    }
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
