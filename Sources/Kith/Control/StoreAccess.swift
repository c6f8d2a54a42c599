public import KithCore

/// What a command does with a node, whether it opened the directory itself (``Node``) or talks to
/// the node that has it (``ControlClient``).
///
/// Looking at a store never begins it: a store that nobody wrote to shows nothing. Only ``write(_:in:)``
/// begins one, on all devices of the account.
public protocol StoreAccess: Sendable {
  /// What a key of a store shows.
  func value(forKey key: String, in store: String) async throws(KithError) -> PropertyListValue?

  /// All that a store shows.
  func values(in store: String) async throws(KithError) -> [Key: PropertyListValue]

  /// Writes that stand or fall together, durable on return. Nil removes a key.
  func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError)

  /// The node's status.
  func report() async throws(KithError) -> NodeReport

  /// What a store uses of its limits.
  func usage(of store: String) async throws(KithError) -> UsageReport

  /// What the quota hides in a store.
  func hiddenEntries(in store: String) async throws(KithError) -> [HiddenValue]

  /// Refused transactions of a store; those up to a number are forgotten.
  func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [RefusedTransaction]

  /// Accepts that what was damaged of a store, and is missing still, is gone; durable on return. What
  /// another device gives back later is taken all the same.
  func acceptLoss(in store: String) async throws(KithError)

  /// Waits until other devices have everything, or the time is over. Throws ``KithError`` with
  /// `unknownStore` where the account has no such store.
  func synchronize(_ store: String, timeout: Duration) async throws(KithError) -> SyncReport

  /// What a store shows, and every change after it, until the task is cancelled. Throws
  /// ``KithError`` with `unknownStore` where the account has no such store.
  func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (Change) async -> Void
  ) async throws(KithError)

  /// The devices of the account, also those that were revoked, by id.
  func deviceReports() async throws(KithError) -> [DeviceReport]

  /// Says that the time that the device uses is right; see `Node.acceptTime`.
  func acceptTime() async throws(KithError)

  /// Calls a device something else; see `Node.rename`.
  func rename(_ device: DeviceID, to name: String) async throws(KithError)

  /// Throws a device out of the account; see `Node.revoke`.
  func revoke(_ device: DeviceID, keeping staying: Set<DeviceID>) async throws(KithError)

  /// Invites one device by a token; see `Node.invite`. The addresses are the hosts that the token
  /// names; none: the node's own.
  func invite(
    addresses: [String],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate

  /// Invites one device by a short code or a token; see `Node.inviteByCode`.
  func inviteByCode(
    addresses: [String],
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate
}

extension Node: StoreAccess {
  /// What a key of a store shows.
  public func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? {
    guard let store = try existing(store) else { return nil }
    return store.value(forKey: key)
  }

  /// All that a store shows.
  public func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    try existing(store)?.dictionary ?? [:]
  }

  /// Writes that stand or fall together, durable on return. Nil removes a key.
  public func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError) {
    try await write(writes, in: store, origin: .owner)
  }

  /// Writes of a program of this host that stand or fall together, durable on return.
  func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String, origin: WriteOrigin
  ) async throws(KithError) {
    var operations: [KithCore.Operation] = []
    for write in writes { operations.append(try .encoding(write.value, forKey: write.key)) }
    if let known = try existing(store, isLooking: false) {
      guard !operations.isEmpty else { return }
      try await engine.settle(engine.accept(known.identifier, operations, origin: origin))
      return
    }
    // What is refused begins no store, nor does a removal.
    var trial = TrialStore()
    try trial.write(writes)
    guard writes.contains(where: { $0.value != nil }) else { return }
    let begun = try self.store(store).identifier
    try await engine.settle(engine.accept(begun, operations, origin: origin))
  }

  /// The node's status.
  public func report() async throws(KithError) -> NodeReport {
    transport.withLock { $0 }?.probeQuietSessions()
    return NodeReport(status)
  }

  /// What a store uses of its limits.
  public func usage(of store: String) async throws(KithError) -> UsageReport {
    UsageReport(try existing(store)?.usage ?? Usage(bytes: 0, keys: 0, policy: .standard))
  }

  /// What the quota hides in a store.
  public func hiddenEntries(in store: String) async throws(KithError) -> [HiddenValue] {
    try existing(store)?.hiddenEntries ?? []
  }

  /// Refused transactions of a store; those up to a number are forgotten.
  public func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [RefusedTransaction] {
    guard let store = try existing(store) else { return [] }
    let refusals = store.refusals
    if let number { store.takeRefusals(through: number) }
    return refusals
  }

  /// Accepts that what was damaged of a store, and is missing still, is gone; durable on return. What
  /// another device gives back later is taken all the same.
  ///
  /// - Throws: ``KithError`` with a code of storage.
  public func acceptLoss(in store: String) async throws(KithError) {
    guard let name = StoreIdentifier(store) else { return }
    let engine = engine
    engine.input(.acceptLoss(name))
    try await BlockingThread.run { () throws(KithError) in try engine.flush() }
  }

  /// Waits until other devices have everything, or the time is over.
  public func synchronize(
    _ store: String, timeout: Duration
  ) async throws(KithError) -> SyncReport {
    try await known(store).synchronize(timeout: timeout)
  }

  /// What a store shows, and every change after it, until the task is cancelled.
  public func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (Change) async -> Void
  ) async throws(KithError) {
    let (values, changes) = try known(store).view.subscribe(seesOwnWrites: true, as: .device)
    await onValues(values)
    for await change in changes { await onChange(change) }
  }

  /// Invites one device with the usual options, but for the hosts that the token names.
  public func invite(
    addresses: [String],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    var options = InvitationOptions()
    if !addresses.isEmpty { options.addresses = addresses }
    return try await invite(options: options, onToken: onToken, onJoinRequest: onJoinRequest)
  }

  /// Invites one device by a code with the usual options, but for the hosts that the token names.
  public func inviteByCode(
    addresses: [String],
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    var options = InvitationOptions()
    if !addresses.isEmpty { options.addresses = addresses }
    return try await inviteByCode(
      options: options, onEvent: onEvent, onJoinRequest: onJoinRequest)
  }

  /// A store that the account has, under the limits that it has already; nil where nobody wrote to
  /// it and nobody opened it.
  private func existing(
    _ identifier: String, isLooking: Bool = true
  ) throws(KithError) -> KeyValueStore? {
    // A malformed identifier is refused as it would be on writing.
    guard let name = StoreIdentifier(identifier) else { return try store(identifier) }
    guard let policy = engine.read({ $0.usage(of: name)?.policy }) else { return nil }
    return KeyValueStore(
      backing: engine, view: try engine.open(name, policy: policy, isLooking: isLooking))
  }

  /// A store that the account has.
  ///
  /// - Throws: ``KithError`` with `unknownStore` where it has none of the name.
  private func known(_ identifier: String) throws(KithError) -> KeyValueStore {
    if let store = try existing(identifier) { return store }
    throw KithError(
      .unknownStore,
      "The account has no store \"\(identifier)\" yet. Write to it first, or run the node with it.")
  }
}
