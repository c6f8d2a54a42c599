internal import KithCore

extension Node: NodeAccess {
  package func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    try await perform(call, as: .owner, onEvent: onEvent)
  }

  func perform(
    _ call: NodeCall, as origin: WriteOrigin,
    onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    guard call.isBlocking else { return try await answer(call, as: origin, onEvent: onEvent) }
    await blockingRequests.acquire()
    defer { blockingRequests.release() }
    return try await answer(call, as: origin, onEvent: onEvent)
  }

  private func answer(
    _ call: NodeCall, as origin: WriteOrigin,
    onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    let engine = engine
    if call.needsMembership, engine.read({ $0.isRevoked }) { throw .revokedDevice }
    switch call {
    case .values(let store, let key):
      guard let known = try existing(store) else { return .shown([], isLacking: false) }
      // Before the values: data that comes back in between must not hide that they are incomplete.
      let isLacking = engine.read { $0.isLacking(known.identifier) }
      guard let key else {
        return .shown(try known.dictionary.operations, isLacking: isLacking)
      }
      let shown = known.value(forKey: key).map { [Key(key): $0] } ?? [:]
      return .shown(try shown.operations, isLacking: isLacking)
    case .commit(let store, let operations, let expected):
      guard let known = try storeToWrite(store, operations, expecting: expected) else {
        return .done
      }
      try await engine.awaitDurability(
        of:
          engine.accept(known, operations, expecting: expected, origin: origin))
    case .commitEach(let store, let transactions, let policy):
      guard transactions.count <= LocalLimits.transactions else { throw .malformedControl }
      return .written(try await write(transactions, to: store, policy, as: origin))
    case .status:
      transport.withLock { $0 }?.probeQuietSessions()
      return .status(try status.json)
    case .dependents(let device):
      return .devices(engine.read { $0.roster.dependents(of: device) })
    case .usage(let store):
      guard let usage = try existing(store)?.usage else { return .usage(try usageOfNew(store)) }
      return .usage(usage)
    case .hidden(let store):
      return .hidden(try existing(store)?.hiddenEntries ?? [])
    case .refusals(let store, let number):
      guard let known = try existing(store)?.identifier else { return .refusals([]) }
      return .refusals(try engine.refusals(of: known, takingThrough: number))
    case .history(let store, let key, let limit):
      guard let known = try existing(store)?.identifier else { return .history([]) }
      return .history(engine.history(of: known, key: key, limit: limit))
    case .undo(let store, let undo):
      guard let known = try existing(store)?.identifier,
        let undone = try engine.accept(undo, in: known, origin: origin)
      else { return .history([]) }
      try await engine.awaitDurability(of: undone.write)
      return .history(undone.past)
    case .acceptLoss(let store):
      guard let name = StoreIdentifier(store) else { break }
      engine.input(.acceptLoss(name))
      try await BlockingThread.run { () throws(KithError) in try engine.flush() }
    case .acceptTime: try await engine.handInDurably(.acceptTime)
    case .carriers: return .carriers(knownCarriers)
    case .keepCarrier(let settings): try await keep(settings)
    case .removeCarrier(let settings): try await remove(settings)
    case .lookAtCarriers: engine.lookAtCarriers()
    case .meet(let address): return .met(try await meet(address, waiting: LocalLimits.meeting))
    case .forget(let address): try await forget(address: address)
    case .rename(let device, let name): try await engine.handInDurably(.rename(device, name))
    case .revoke(let device, let staying):
      try await engine.handInDurably(.revoke(device, keeping: staying))
    case .waitUntilSynced(let store, let seconds, let devices):
      let wait = min(max(0, seconds), LocalLimits.longestWaitSeconds)
      return .syncReport(
        try await known(store).waitUntilSynced(timeout: .seconds(wait), devices: devices))
    case .watch(let store):
      let (values, changes) = try known(store).view.subscribe(seesOwnWrites: true, own: nil)
      _ = await onEvent(.values(try values.operations))
      for await change in changes { _ = await onEvent(.change(try LocalChange(change))) }
    case .invite(let addresses, let hasCode):
      let options = InvitationOptions(hasCode: hasCode, addresses: addresses)
      return .joined(try await invite(options, onEvent: onEvent))
    case .yield: try yield()
    case .hello, .open, .write, .writeEach, .decide, .followProgress: throw .malformedControl
    case .flush: try await BlockingThread.run { () throws(KithError) in try engine.flush() }
    case .syncReport(let store): return .syncReport(engine.syncReport(of: store))
    case .adopt(let store, let policy, let writes):
      let lost = try await BlockingThread.run { () throws(KithError) in
        try engine.adopt(Node.checked(store.rawValue, policy), policy, writes)
      }
      return .keys(lost.sorted().map(\.text))
    }
    return .done
  }

  // MARK: Stores

  /// Writes transactions, each accepted or refused alone; durable on return.
  private func write(
    _ transactions: [[KithCore.Operation]], to store: String, _ policy: Policy,
    as origin: WriteOrigin
  ) async throws(KithError) -> [KithError?] {
    var known: StoreIdentifier?
    var refused: [KithError?] = []
    // The first transaction that writes something may create the store.
    for operations in transactions {
      do throws(KithError) {
        known = try storeToWrite(store, operations, expecting: .none, policy)
        if known != nil { break }
        refused.append(nil)
      } catch {
        guard error.isRefusal else { throw error }
        refused.append(error)
      }
    }
    guard let known else { return refused }
    let rest = Array(transactions.dropFirst(refused.count))
    let (outcomes, last) = try engine.accept(known, each: rest, origin: origin)
    if let last { try await engine.awaitDurability(of: last) }
    return refused + outcomes
  }

  /// The store of a transaction, created if it is new; nil if there is nothing to write.
  private func storeToWrite(
    _ store: String, _ operations: [KithCore.Operation], expecting expected: ExpectedValues,
    _ policy: Policy = .standard
  ) throws(KithError) -> StoreIdentifier? {
    if let known = try existing(store, isLooking: false) {
      return operations.isEmpty ? nil : known.identifier
    }
    if let name = StoreIdentifier(store) {
      try engine.read { replica in
        Result { () throws(KithError) in try KithError.check(expected, in: name, of: replica) }
      }.get()
    }
    // Neither a refused transaction nor a removal creates a store.
    var trial = TrialStore(values: [:], usage: Usage(bytes: 0, keys: 0, policy: policy))
    try trial.write(operations)
    guard operations.contains(where: { $0.value != nil }) else { return nil }
    return try self.store(store, policy: policy).identifier
  }

  /// A store of the account, under its current limits; nil if nobody has written to it or opened
  /// it.
  private func existing(
    _ identifier: String, isLooking: Bool = true
  ) throws(KithError) -> KeyValueStore? {
    // Throws for a malformed identifier, as writing would.
    guard let name = StoreIdentifier(identifier) else { return try store(identifier) }
    guard let policy = engine.read({ $0.usage(of: name)?.policy }) else { return nil }
    return KeyValueStore(
      service: engine, view: try engine.open(name, policy: policy, isLooking: isLooking))
  }

  /// The usage of a store that a write would create. Throws `tooManyStores` if the account has as many
  /// stores as a device keeps.
  private func usageOfNew(_ identifier: String) throws(KithError) -> Usage {
    if let name = StoreIdentifier(identifier),
      engine.read({ $0.storeIdentifiers.count }) >= Limits.stores
    {
      throw KithError(.tooManyStores(limit: Limits.stores), store: name)
    }
    return Usage(bytes: 0, keys: 0, policy: .standard)
  }

  /// Throws `unknownStore` if the account has no such store.
  private func known(_ identifier: String) throws(KithError) -> KeyValueStore {
    if let store = try existing(identifier) { return store }
    throw KithError(
      .unknownStore,
      "The account has no store \"\(identifier)\" yet. Write to it first, or run the node with it.")
  }
}
