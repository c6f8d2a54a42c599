internal import KithCore

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
  /// ends when the body returns without having accepted a candidate.
  ///
  /// - Parameters:
  ///   - addresses: The hosts that the token names; empty: this host's own addresses.
  ///   - body: Shows the invitation, and decides.
  /// - Returns: The new device.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `pairingCode`
  ///   (``KithError/triesLeft`` is 0 if wrong codes ended it), `declined`, `network`, `cancelled`,
  ///   `closed`, `notRunning`, `control` or a storage code; or the body's error.
  @discardableResult
  public nonisolated(nonsending) func invite(
    addresses: [String] = [], _ body: (Invitation) async throws -> Void
  ) async throws -> DeviceID {
    let account = try await self.account()
    let (openings, opening) = AsyncStream<OpenInvitation>.makeStream()
    let (candidates, asking) = AsyncStream<Invitation.Candidate>.makeStream()
    let accepted = Signal()
    return try await withThrowingTaskGroup(of: DeviceID.self) { group in
      group.addTask {
        defer {
          opening.finish()
          asking.finish()
        }
        return try await account.invite(addresses: addresses, hasCode: true) { invitation in
          opening.yield(invitation)
        } onJoinRequest: { joiner in
          let (answers, answer) = AsyncStream<Bool>.makeStream()
          asking.yield(Invitation.Candidate(joiner, answer, accepted))
          return await answers.first { _ in true } ?? false
        }.id
      }
      for await open in openings {
        let invitation = Invitation(
          code: open.code ?? "", token: open.token, addresses: open.addresses,
          candidates: candidates)
        try await body(invitation)
        break
      }
      if accepted.version == 0 { group.cancelAll() }
      guard let device = try await group.next() else { throw CancellationError() }
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

    /// A device that asks to join.
    public final class Candidate: Sendable {
      /// The device, as it names itself.
      public let device: PairingDevice
      private let answer: AsyncStream<Bool>.Continuation
      private let accepted: Signal

      init(
        _ device: PairingDevice, _ answer: AsyncStream<Bool>.Continuation, _ accepted: Signal
      ) {
        self.device = device
        self.answer = answer
        self.accepted = accepted
      }

      deinit { answer.finish() }

      /// Makes the device a member of the account.
      public func accept() {
        // A device that has gone meanwhile is not accepted.
        if case .enqueued = answer.yield(true) { accepted.raise() }
      }
    }
  }
}
