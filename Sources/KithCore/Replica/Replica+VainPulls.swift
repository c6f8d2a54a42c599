/// First pulls that no member is left to end: whoever was past its own was revoked before others had
/// pulled. Then one of those that wait goes first, or all would wait, and publish nothing, for ever.
extension Replica {
  /// Whether this device is the one to go first, in anything.
  var pullsInVain: Bool {
    guard isProvisional || stores.values.contains(where: \.isProvisional) else { return false }
    guard let others = sessionsOfAllOthers else { return false }
    return isProvisional && others.allSatisfy(isNew)
      || stores.values.contains { isInVain($0, others) }
  }

  /// Ends them, once all other members have said that they wait for the same, and what they have was
  /// applied here.
  mutating func endVainPulls() {
    guard let others = sessionsOfAllOthers else { return }
    let isDeviceInVain = isProvisional && others.allSatisfy(isNew)
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], isInVain(store, others) else { continue }
      stores[identifier]?.isProvisional = false
      effects.append(.persist([.putStore(identifier, store.policy, isProvisional: false)]))
      effects.append(.firstSync(identifier))
      guard !isDeviceInVain else { continue }
      for id in sessions.keys.sorted() where exchanges(id) { sendHave(on: id, only: [identifier]) }
    }
    guard isDeviceInVain else { return }
    isProvisional = false
    effects.append(.persist([.setProvisional(false)]))
    effects.append(.progress)
    for id in sessions.keys.sorted() where exchanges(id) { sendHave(on: id) }
  }

  /// A session with each other member, where this device has the smallest id of all; nil while one is
  /// not connected, for it may be past its first pull.
  private var sessionsOfAllOthers: [Session]? {
    guard roster.isMember(keys.id) else { return nil }
    let others = roster.sortedMembers.map(\.device).filter { $0 != keys.id }
    guard others.allSatisfy({ keys.id < $0 }) else { return nil }
    let found = others.compactMap { other in
      sessions.values.first { $0.device == other && $0.isExchanging }
    }
    return found.count == others.count ? found : nil
  }

  /// Whether the peer's own first pull is still to come, and all that it has was applied.
  private func isNew(_ session: Session) -> Bool {
    guard session.isProvisional == true, let listed = session.listed else { return false }
    return listed.intersection(stores.keys).subtracting(session.mismatched)
      .isSubset(of: session.pulled.subtracting(session.unjudged))
  }

  private func isInVain(_ store: StoreReplica, _ others: [Session]) -> Bool {
    store.isProvisional
      && others.allSatisfy { session in
        (session.isProvisional == true || session.provisionalStores.contains(store.identifier))
          && session.pulled.contains(store.identifier)
          && !session.unjudged.contains(store.identifier)
      }
  }
}
