public import KithCore
internal import Synchronization

extension Accounts {
  /// The status of the node and its peers, as the node knows it. The node is this program's, or the
  /// one that the program is attached to.
  ///
  /// - Throws: ``KithError`` with `closed`, or with `notRunning` or `control` if the other
  ///   program's node does not answer.
  public func report() async throws(KithError) -> NodeStatus {
    let (node, account) = try seated()
    var status = try await node.report()
    // The device of the local stores is in no account of a person.
    if account == nil { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  /// The ``report()`` now and each time it changes, through signing in and out. A slow reader gets
  /// only the latest. It ends when the accounts are closed or the task is cancelled.
  ///
  /// ```swift
  /// for await status in accounts.statusUpdates { show(status.peers.count, status.problems) }
  /// ```
  public var statusUpdates: StatusUpdates { StatusUpdates(accounts: self) }

  /// The status of the accounts' node, each time it changes; see ``Accounts/statusUpdates``.
  public struct StatusUpdates: AsyncSequence, Sendable {
    /// Takes the statuses.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let accounts: Accounts
      private var last: NodeStatus?

      init(_ accounts: Accounts) {
        self.accounts = accounts
      }

      /// The status, once it differs from the one before; nil at the end.
      public mutating func next() async -> NodeStatus? {
        while !Task.isCancelled, !accounts.moved.isFinished {
          let moment = Moment(accounts)
          // If no node answers, another process is about to serve the directory.
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

    /// An iterator, which begins with the status now.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(accounts) }
  }

  /// Everything that can change the status, as of before the status was read.
  private struct Moment {
    let moved: (signal: Signal, version: UInt64)
    /// Of the node.
    let progress: (signal: Signal, version: UInt64)

    init(_ accounts: Accounts) {
      moved = (accounts.moved, accounts.moved.version)
      let signal = accounts.state.withLock { $0.seat.service }.progress
      progress = (signal, signal.version)
    }

    /// Returns once there may be something new.
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
