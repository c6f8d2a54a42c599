internal import KithCrypto

extension Replica {
  /// Accepts a local transaction if every value that it writes would be shown (`Docs/Protocol.md`,
  /// "What is shown"), and shows it at once.
  mutating func write(_ id: WriteID, _ identifier: StoreIdentifier, _ operations: [Operation]) {
    do throws(WriteError) {
      try accept(id, identifier, operations)
    } catch {
      effects.append(.refused(id, error))
    }
  }

  private mutating func accept(
    _ id: WriteID, _ identifier: StoreIdentifier, _ operations: [Operation]
  ) throws(WriteError) {
    guard !isRevoked else { throw .revoked }
    guard let policy = stores[identifier]?.policy else { throw .unknownStore(identifier) }
    for operation in operations { try Self.check(operation, policy) }
    let taken = Canary.showLate.isPlanted ? Array(operations.prefix(1)) : operations
    let effective = stores[identifier]?.effective(taken) ?? []
    if !effective.isEmpty {
      let stamp = tick()
      if let full = stores[identifier]?.lackOfRoom(for: effective) { throw full }
      let author = keys.id
      guard
        let changes = stores[identifier]?.accept(effective, clock: stamp, author: author)
      else { throw .quotaExceeded(numbers(of: effective, in: identifier)) }
      showLocal(changes, of: effective, in: identifier)
    }
    stores[identifier]?.waiting.append(id)
    effects.append(.accepted(id))
  }

  private static func check(_ operation: Operation, _ policy: Policy) throws(WriteError) {
    let bytes = operation.key.utf8.count
    guard bytes > 0, bytes <= policy.keyBytes || operation.value == nil else {
      throw .invalidKey(key: operation.key, bytes: bytes, limit: policy.keyBytes)
    }
    guard let size = operation.value?.size, size > policy.valueBytes else { return }
    throw .valueTooLarge(key: operation.key, bytes: size, limit: policy.valueBytes)
  }

  private func numbers(
    of operations: [Operation], in identifier: StoreIdentifier
  ) -> QuotaNumbers {
    guard let store = stores[identifier] else { preconditionFailure("the store is open") }
    var numbers = QuotaNumbers(
      usedBytes: store.state.shownBytes, askedBytes: store.state.shownBytes,
      limitBytes: store.policy.totalBytes, usedKeys: store.state.shown.count,
      askedKeys: store.state.shown.count, limitKeys: store.policy.keys)
    for operation in operations {
      let shown = store.state.shown[Key(operation.key)]
      numbers.askedBytes += (operation.value?.size ?? 0) - (shown?.value.size ?? 0)
      numbers.askedKeys += (operation.value == nil ? 0 : 1) - (shown == nil ? 0 : 1)
    }
    return numbers
  }

  /// The program is not notified of its own writes, but of what they change of other keys
  /// (`Docs/Protocol.md`,
  /// "First sync").
  private mutating func showLocal(
    _ changes: [(key: Key, value: EncodedValue?)], of operations: [Operation],
    in identifier: StoreIdentifier
  ) {
    let own = Set(operations.map { Key($0.key) })
    for (reason, part) in [
      (nil, changes.filter { own.contains($0.key) }),
      (ChangeReason.quotaViolationChange, changes.filter { !own.contains($0.key) }),
    ] where !part.isEmpty {
      effects.append(
        .view(ViewChange(store: identifier, reason: reason, changes: part)))
    }
  }

  // MARK: Flush

  /// Publishes what can be, makes the rest durable, and tells peers what is covered now.
  mutating func flush() {
    var mutations: [Mutation] = []
    var batches: [Batch] = []
    var durable: [WriteID] = []
    for identifier in stores.keys.sorted() where needsFlush(identifier) {
      if canPublish(identifier) {
        let published = publish(identifier)
        mutations += published.mutations
        if let batch = published.batch { batches.append(batch) }
      } else {
        mutations += stores[identifier]?.makeDraftsDurable() ?? []
      }
      durable += stores[identifier]?.waiting ?? []
      stores[identifier]?.waiting = []
    }
    if !mutations.isEmpty {
      effects.append(.persist(mutations + [.setClock(clock.latest)]))
    }
    effects += durable.map(Effect.durable)
    for batch in batches { push(batch, except: nil) }
    tellProgress()
  }
}
