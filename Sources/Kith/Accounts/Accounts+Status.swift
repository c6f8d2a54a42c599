public import KithCore

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
    let (node, account) = try await seated()
    var status = try await node.status()
    // The local stores' device is in no person's account.
    if account == nil { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  /// The ``status()`` now and after each change, through signing in and out.
  ///
  /// At most ten come in a second, and a slow reader gets only the latest. It ends when the accounts
  /// are closed or the task is cancelled.
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
        // Another process may be about to serve the directory.
        if let status = try? await self.status(), status != last { return status }
        await race([
          { await self.switched.wait(after: move) }, { await progress.wait(after: step) },
        ])
      }
      return nil
    }
  }

  private static let statusInterval = Duration.milliseconds(100)
}
