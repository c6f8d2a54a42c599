public import KithCore

/// What a command does with a node, whether it opened the directory itself (``Node``) or talks to
/// the node that has it (``ControlClient``).
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

  /// Waits until other devices have everything, or the time is over.
  func synchronize(_ store: String, timeout: Duration) async throws(KithError) -> SyncReport

  /// What a store shows, and every change after it, until the task is cancelled.
  func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (Change) async -> Void
  ) async throws(KithError)

  /// Invites one device; see `Node.invite`. The addresses are the hosts that the code names; none:
  /// the node's own.
  func invite(
    addresses: [String],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate
}

extension Node: StoreAccess {
  /// What a key of a store shows.
  public func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? {
    try self.known(store).value(forKey: key)
  }

  /// All that a store shows.
  public func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    try known(store).dictionary
  }

  /// Writes that stand or fall together, durable on return. Nil removes a key.
  public func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError) {
    var operations: [KithCore.Operation] = []
    for write in writes { operations.append(try .encoding(write.value, forKey: write.key)) }
    try await known(store).commit(operations)
  }

  /// The node's status.
  public func report() async throws(KithError) -> NodeReport { NodeReport(status) }

  /// What a store uses of its limits.
  public func usage(of store: String) async throws(KithError) -> UsageReport {
    UsageReport(try known(store).usage)
  }

  /// What the quota hides in a store.
  public func hiddenEntries(in store: String) async throws(KithError) -> [HiddenValue] {
    try known(store).hiddenEntries
  }

  /// Refused transactions of a store; those up to a number are forgotten.
  public func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [RefusedTransaction] {
    let store = try known(store)
    let refusals = store.refusals
    if let number { store.takeRefusals(through: number) }
    return refusals
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
    let (values, changes) = try known(store).snapshotAndChanges()
    await onValues(values)
    for await change in changes { await onChange(change) }
  }

  /// Invites one device with the usual options, but for the hosts that the code names.
  public func invite(
    addresses: [String],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    var options = InvitationOptions()
    if !addresses.isEmpty { options.addresses = addresses }
    return try await invite(options: options, onToken: onToken, onJoinRequest: onJoinRequest)
  }

  /// A store under the limits that it has already, or the standard ones.
  private func known(_ identifier: String) throws(KithError) -> KeyValueStore {
    guard let name = StoreIdentifier(identifier) else { return try store(identifier) }
    let policy = engine.read { $0.usage(of: name)?.policy } ?? .standard
    return try store(identifier, policy: policy)
  }
}
