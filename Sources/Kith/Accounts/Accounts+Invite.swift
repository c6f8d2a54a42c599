public import KithCrypto
internal import Synchronization

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
