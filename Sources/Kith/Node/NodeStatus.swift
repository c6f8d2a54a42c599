public import KithCore

/// What a node knows of itself and its peers at one moment.
public struct NodeStatus: Sendable {
  /// The account.
  public var account: AccountID
  /// This device.
  public var device: DeviceID
  /// The directory.
  public var directory: String
  /// Whether the node runs.
  public var isRunning: Bool
  /// Where it listens.
  public var listening: [String]
  /// What discovery does and found; nil while there is none.
  public var discovery: NodeDiscovery?
  /// Sessions, by age.
  public var peers: [ReplicaStatus.Peer]
  /// Devices of the account, by id.
  public var devices: [ReplicaStatus.Device]
  /// Stores, by identifier.
  public var stores: [ReplicaStatus.Store]
  /// Whether this device was removed from the account: it reads what it has, and writes nothing.
  public var isRevoked: Bool
  /// Whether the kernel calls the clock synchronised.
  public var isClockSynchronised: Bool { clock.isSynchronised }
  /// Whose time counts, and who differs from it.
  public var clock: ReplicaStatus.Clock
  /// What was counted since the start.
  public var counters: ReplicaStatus.Counters
  /// What is wrong, and what to do: a disk that takes no writes, a copied directory, items that
  /// cannot be read, states that differed.
  public var problems: [KithError]
}

extension Node {
  /// What the node knows of itself and its peers now.
  ///
  /// - Complexity: O(*n*) in the stores' keys where they changed, for their digests.
  public var status: NodeStatus {
    let (replica, isRunning, problem) = engine.state.withLock { state in
      (state.replica.status(), state.isRunning, state.health.problem)
    }
    return NodeStatus(
      account: account, device: device, directory: configuration.directory, isRunning: isRunning,
      listening: listeningAddresses,
      discovery: discovery.withLock { $0 }.map { NodeDiscovery($0.status) }, peers: replica.peers,
      devices: replica.devices, stores: replica.stores, isRevoked: replica.isRevoked,
      clock: replica.clock, counters: replica.counters,
      problems: (problem.map { [$0] } ?? []) + problems(of: replica))
  }

  private func problems(of replica: ReplicaStatus) -> [KithError] {
    var problems: [KithError] = []
    if replica.isRevoked {
      var error = KithError.revokedDevice
      error.device = device
      problems.append(error)
    }
    if replica.isBarren {
      problems.append(
        KithError(
          .tooManyIncarnations,
          "This device was copied or restored too often, and publishes nothing any more. Join "
            + "again in another directory.", device: device))
    }
    if replica.counters.clones > 0 {
      problems.append(
        KithError(
          .cloned,
          "This device runs a second time, from a copy of its directory, or did so before an old "
            + "copy was put back. Stop all but one, and join again elsewhere in new directories.",
          device: device))
    }
    let lacking = replica.stores.compactMap { store in
      store.missing.map { "\(store.identifier.rawValue) (\($0.text))" }
    }
    if !lacking.isEmpty {
      problems.append(
        KithError(
          .damaged,
          "The database was damaged: something is missing of \(lacking.joined(separator: ", ")), "
            + "which keys cannot be told. Other devices give it back as they are met; until then "
            + "keys may be missing or show older values. See to the disk. If no other device has "
            + "it: kith doctor --accept-loss.",
          path: configuration.directory))
    } else if replica.counters.damaged > 0 {
      problems.append(
        KithError(
          .damaged,
          "Rows of the database were damaged: \(replica.counters.damaged). Nothing is missing. See "
            + "to the disk.", path: configuration.directory))
    }
    if replica.counters.divergences > 0 {
      problems.append(
        KithError(
          .diverged,
          "States differed where they must not, and were exchanged anew: "
            + "\(replica.counters.divergences). Please report it."))
    }
    let names = Dictionary(
      replica.devices.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
    return problems + NodeStatus.clockProblems(replica.clock, names: names)
  }

  /// The status now and whenever it changes. Only the latest is kept for who is slow. It ends when
  /// the node is closed or the task cancelled.
  public var statusUpdates: NodeStatusUpdates { NodeStatusUpdates(node: self) }
}

/// The statuses of a node; see ``Node/statusUpdates``.
public struct NodeStatusUpdates: AsyncSequence, Sendable {
  /// Takes the statuses.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let node: Node
    var seen: UInt64?

    /// The status, once it has changed since the one before; nil at the end.
    public mutating func next() async -> NodeStatus? {
      let signal = node.engine.progress
      if let seen { await signal.wait(after: seen) }
      guard !Task.isCancelled, !signal.isFinished else { return nil }
      seen = signal.version
      return node.status
    }
  }

  let node: Node

  /// An iterator, which begins with the status now.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(node: node) }
}
