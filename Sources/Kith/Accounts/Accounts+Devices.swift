public import KithCore
public import KithCrypto

extension Accounts {
  /// The devices that are members only through another.
  ///
  /// They are revoked with it, except those that ``revoke(_:keeping:)`` keeps.
  ///
  /// - Returns: The devices, ascending; none while nobody is signed in.
  /// - Throws: ``KithError`` as ``status()`` does.
  /// - Complexity: O(*n*) in the account's records.
  public func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    try await currentNodes().account?.dependents(of: device) ?? []
  }

  /// Renames a device for all devices of the account.
  ///
  /// Durable on return; other devices learn it when they meet.
  ///
  /// ```swift
  /// try await accounts.rename(device.id, to: "studio")
  /// ```
  ///
  /// - Parameters:
  ///   - device: This device or another of ``status()``.
  ///   - name: 1 to 64 bytes of UTF-8, without control or unseen characters. A name that looks like
  ///     another member's is refused.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidName`,
  ///   `invalidDevice`, `revoked`, `closed`, `notRunning`, `control` or a storage code.
  public func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    try await account().rename(device, to: name)
  }

  /// Removes a device from the account for ever.
  ///
  /// Its signatures stop counting, and it cannot read later writes. The writes that it made before
  /// stay. Durable on return; other devices learn it when they meet.
  ///
  /// ```swift
  /// let others = try await accounts.dependents(of: lost.id)
  /// try await accounts.revoke(lost.id, keeping: Set(others))
  /// ```
  ///
  /// - Parameters:
  ///   - device: Another device.
  ///   - staying: Those of ``dependents(of:)`` that stay; the others are revoked too. This device
  ///     always stays.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidDevice`, `revoked`,
  ///   `closed`, `notRunning`, `control` or a storage code.
  public func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    try await account().revoke(device, keeping: staying)
  }

  func account() async throws(KithError) -> any NodeAccess {
    if let account = try await currentNodes().account { return account }
    throw KithError(
      .missing, "Nobody is signed in here. Create an account or join one first.",
      path: configuration.directory)
  }

  /// The node of the stores, for the requests of commands.
  package var nodeAccess: any NodeAccess {
    get async throws(KithError) { try await currentNodes().node }
  }

  /// The node of the stores, after a change of it that goes on; also as `account` if somebody is
  /// signed in.
  func currentNodes() async throws(KithError) -> (node: any NodeAccess, account: (any NodeAccess)?)
  {
    let now = await BlockingThread.run {
      self.switchLock.withLock { _ in self.state.withLock { $0 } }
    }
    if now.isClosed { throw .closedNode }
    let node: any NodeAccess =
      switch now.active.kind {
      case .own(let node): node
      case .attached(let node): LocalClient(directory: node.directory)
      }
    return (node, now.active.location == .signedOut ? nil : node)
  }
}

extension Accounts {
  /// The status of the node and its peers.
  ///
  /// The node is this program's, or the one that the program is attached to. Its `devices` are those
  /// of the account that is signed in, including revoked ones, by id.
  ///
  /// ```swift
  /// for device in try await accounts.status().members { list(device.name, device.isConnected) }
  /// ```
  ///
  /// - Throws: ``KithError`` with `closed`, or with `notRunning` or `control` if the other
  ///   program's node does not answer.
  /// - Complexity: O(*n* · *s*) in devices and stores.
  public func status() async throws(KithError) -> NodeStatus {
    let (node, account) = try await currentNodes()
    var status = try await node.status()
    let pending = state.withLock { $0.pendingAdoption?.error }
    // Another process soon closes the local stores, or has started.
    if let pending, pending.code != .inUse, pending.code != .notRunning {
      status.problems.append(NodeStatus.Problem(pending))
    }
    // The local stores' device is in no person's account.
    if account == nil { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  /// The ``status()`` now and after each change, through signing in and out.
  ///
  /// At most ten come in a second, and a slow reader gets only the latest. While the other program's
  /// node does not answer, none comes, and it is asked again and again. It ends when the accounts are
  /// closed or the task is cancelled.
  ///
  /// ```swift
  /// for await status in accounts.statusUpdates { show(status.peers.count, status.problems) }
  /// ```
  public var statusUpdates: some AsyncSequence<NodeStatus, Never> & Sendable {
    Updates<NodeStatus> { last in
      var isFirst = last == nil
      while !Task.isCancelled, !self.switched.isFinished {
        // A status costs digests of stores, and a busy node commits hundreds of times in a second.
        if !isFirst { try? await Task.sleep(for: Self.statusInterval) }
        isFirst = false
        // Read before the status, so that no change is missed.
        let move = self.switched.version
        let progress = self.state.withLock { $0.active.service }.progress
        let step = progress.version
        var bodies: [@Sendable () async -> Void] = [
          { await self.switched.wait(after: move) }, { await progress.wait(after: step) },
        ]
        if let status = try? await self.status() {
          if status != last { return status }
        } else {
          // Another process may be about to serve the directory, or was stopped and goes on.
          bodies.append { try? await Task.sleep(for: Self.retryInterval) }
        }
        await race(bodies)
      }
      return nil
    }
  }

  private static let statusInterval = Duration.milliseconds(100)
  /// From a status that failed to the next question.
  private static let retryInterval = Duration.seconds(1)
}
