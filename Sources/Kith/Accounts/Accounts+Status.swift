public import KithCore
internal import Synchronization

extension Accounts {
  /// What the node knows of itself and its peers: this program's, or the one that it is attached to.
  ///
  /// - Throws: ``KithError`` with `closed`, or with `notRunning` or `control` where that one does not
  ///   answer.
  public func report() async throws(KithError) -> NodeStatus {
    let (node, account) = try seated()
    var status = try await node.report()
    // The device of the local stores is in no account of a person.
    if account == nil { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  /// The ``report()`` now and whenever it changes, through signing in and out. Only the latest is kept
  /// for who is slow. It ends when the accounts are closed or the task is cancelled.
  ///
  /// ```swift
  /// for await status in accounts.statusUpdates { show(status.peers.count, status.problems) }
  /// ```
  public var statusUpdates: StatusUpdates { StatusUpdates(accounts: self) }

  /// What the accounts' node says of itself, whenever that changes; see ``Accounts/statusUpdates``.
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
          // Where nobody answers, somebody else is about to.
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

  /// What can change the status, as of before it was looked at.
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
