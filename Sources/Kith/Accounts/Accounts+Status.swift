public import KithCore
internal import Synchronization

extension Accounts {
  /// The status of the node and its peers.
  ///
  /// The node is this program's, or the one that the program is attached to.
  ///
  /// - Throws: ``KithError`` with `closed`, or with `notRunning` or `control` if the other
  ///   program's node does not answer.
  public func report() async throws(KithError) -> NodeStatus {
    let (node, account) = try seated()
    var status = try await node.report()
    // The local stores' device is in no person's account.
    if account == nil { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  /// The ``report()`` now and after each change, through signing in and out.
  ///
  /// A slow reader gets only the latest. It ends when the accounts are closed or the task is
  /// cancelled.
  ///
  /// ```swift
  /// for await status in accounts.statusUpdates { show(status.peers.count, status.problems) }
  /// ```
  public var statusUpdates: StatusUpdates { StatusUpdates(accounts: self) }

  /// The statuses of the node; see ``Accounts/statusUpdates``.
  public struct StatusUpdates: AsyncSequence, Sendable {
    /// The iterator of ``StatusUpdates``.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let accounts: Accounts
      private var last: NodeStatus?

      init(_ accounts: Accounts) {
        self.accounts = accounts
      }

      /// The status, once it differs from the last one; nil at the end.
      public mutating func next() async -> NodeStatus? {
        while !Task.isCancelled, !accounts.moved.isFinished {
          let moment = Moment(accounts)
          // Another process may be about to serve the directory.
          if let report = try? await accounts.report(), report != last {
            last = report
            return report
          }
          await moment.pass()
        }
        return nil
      }
    }

    let accounts: Accounts

    /// Returns an iterator, which begins with the current status.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(accounts) }
  }

  /// Read before the status, so that no change is missed.
  private struct Moment {
    let moved: (signal: Signal, version: UInt64)
    let progress: (signal: Signal, version: UInt64)

    init(_ accounts: Accounts) {
      moved = (accounts.moved, accounts.moved.version)
      let signal = accounts.state.withLock { $0.seat.service }.progress
      progress = (signal, signal.version)
    }

    func pass() async {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { [moved] in await moved.signal.wait(after: moved.version) }
        group.addTask { [progress] in await progress.signal.wait(after: progress.version) }
        await group.next()
        group.cancelAll()
      }
    }
  }
}
