public import KithCore
public import KithCrypto
internal import Synchronization

extension Accounts {
  /// The devices that are members only through another.
  ///
  /// They are revoked with it, except those that ``revoke(_:keeping:)`` keeps.
  ///
  /// - Returns: The devices, ascending; none while nobody is signed in.
  /// - Throws: ``KithError`` as ``status()`` does.
  /// - Complexity: O(*n*) in the account's records.
  public func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    try await seated().account?.dependents(of: device) ?? []
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
    if let account = try await seated().account { return account }
    throw KithError(
      .missing, "Nobody is signed in here. Create an account or join one first.",
      path: configuration.directory)
  }

  /// The node of the stores, for the requests of commands.
  package var nodeAccess: any NodeAccess {
    get async throws(KithError) { try await seated().node }
  }

  /// The node of the stores, after a change of it that goes on; also as `account` if somebody is
  /// signed in.
  func seated() async throws(KithError) -> (node: any NodeAccess, account: (any NodeAccess)?) {
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
  /// Invites one device into the account that is signed in, and makes it a member.
  ///
  /// Show the invitation's code or token. For each candidate, ask a person to compare its
  /// fingerprint with the one that the other device shows. A candidate that is released without an
  /// answer is declined.
  ///
  /// ```swift
  /// try await accounts.invite { invitation in
  ///   await show(invitation.code)
  ///   for await candidate in invitation.candidates {
  ///     let (name, fingerprint) = (candidate.device.name, candidate.device.fingerprint)
  ///     if await ask("Does \(name) show \(fingerprint)?") { candidate.accept() }
  ///   }
  /// }
  /// ```
  /// An invitation lives in memory only, allows 3 tries and 10 minutes, and accepts one device. It
  /// ends when its candidate goes, or when the body returns without having accepted one.
  ///
  /// - Parameters:
  ///   - addresses: The hosts that the token names; empty: this host's own addresses.
  ///   - body: Shows the invitation, and decides.
  /// - Returns: The new device.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `revoked`, `pairingCode`
  ///   (``KithError/triesLeft`` is 0 if wrong codes ended it), `declined`, `network`, `cancelled`,
  ///   `closed`, `notRunning`, `control` or a storage code; or the body's error.
  @discardableResult
  public nonisolated(nonsending) func invite(
    addresses: [String] = [], _ body: (Invitation) async throws -> Void
  ) async throws -> DeviceID {
    let account = try await self.account()
    let (openings, opening) = AsyncStream<OpenInvitation>.makeStream()
    let (candidates, candidate) = AsyncStream<Invitation.Candidate>.makeStream()
    let asking = Invitation.Asking()
    return try await withThrowingTaskGroup(of: DeviceID?.self) { group in
      group.addTask {
        defer {
          opening.finish()
          candidate.finish()
        }
        return try await account.invite(addresses: addresses, hasCode: true) { invitation in
          opening.yield(invitation)
        } onJoinRequest: { joiner in
          let (answers, question) = AsyncStream<Bool>.makeStream()
          guard asking.begin(question) else { return false }
          candidate.yield(Invitation.Candidate(joiner, question))
          let isAccepted = await answers.first { _ in true } ?? false
          if Task.isCancelled { asking.candidateHasGone() }
          return isAccepted
        }.id
      }
      for await open in openings {
        let invitation = Invitation(
          code: open.code ?? "", token: open.token, addresses: open.addresses,
          candidates: candidates)
        try await body(invitation)
        break
      }
      asking.end()
      group.addTask {
        await asking.untilNobodyAsks()
        return nil
      }
      var device = try await group.next() ?? nil
      group.cancelAll()
      if device == nil { device = try await group.next() ?? nil }
      guard let device else { throw CancellationError() }
      return device
    }
  }
}

extension Accounts {
  /// An open invitation; see ``Accounts/invite(addresses:_:)``.
  public struct Invitation: Sendable {
    /// The short code for people, such as `4071-3352`.
    public let code: String
    /// The token for scripts: one long line with the invitation's addresses.
    public let token: String
    /// The addresses at which it listens, `host:port`, best first.
    public let addresses: [String]
    /// The devices that have shown the code or token; it ends with the invitation.
    public let candidates: AsyncStream<Candidate>

    /// Takes one answer; ended without one, it is a refusal.
    typealias Question = AsyncStream<Bool>.Continuation

    /// The candidate that asks, or asked and got its answer.
    final class Asking: Sendable {
      private struct State {
        /// Nil: none, or it has gone.
        var question: Question?
        /// Whether the body has returned, and so answers no more.
        var isOver = false
      }

      private let state = Mutex(State())
      private let hasGone = Signal()

      /// False: nobody answers any more.
      func begin(_ question: Question) -> Bool {
        state.withLock { state in
          if !state.isOver { state.question = question }
          return !state.isOver
        }
      }

      func candidateHasGone() {
        state.withLock { $0.question = nil }
        hasGone.raise()
      }

      /// Unless it was accepted, the candidate is told that it is declined, which ends the invitation.
      func end() {
        let question = state.withLock { state in
          state.isOver = true
          return state.question
        }
        question?.finish()
      }

      /// Returns at once if no candidate has come.
      func untilNobodyAsks() async {
        for await () in hasGone where state.withLock({ $0.question == nil }) { break }
      }
    }

    /// A device that asks to join.
    public final class Candidate: Sendable {
      /// The device, as it names itself.
      public let device: PairingDevice
      private let question: Question

      init(_ device: PairingDevice, _ question: Question) {
        self.device = device
        self.question = question
      }

      deinit { question.finish() }

      /// Makes the device a member of the account.
      public func accept() { question.yield(true) }
    }
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
    let (node, account) = try await seated()
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
