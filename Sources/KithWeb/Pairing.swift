import Dispatch
import Kith
import KithCommands
import KithCore
import ServiceLifecycle
import Synchronization

/// The one pairing of the page: this device invites another, joins an account, or creates one.
final class Pairing: Sendable {
  enum State: Sendable {
    case opening
    case waiting(OpenInvitation, triesLeft: Int, ends: UInt64)
    /// A person compares the fingerprints of both devices.
    case asking(Role, PairingDevice, ownFingerprint: String, notice: String?)
    case admitting(Role)
    case searching
    case pulling(JoinProgress)
    case creating
    /// A person writes the recovery key down. The account does not exist before that.
    case showing(AccountSummary, recoveryKey: String)
    /// `partial`: says that stores came only in part.
    case done(Role, PairingDevice?, partial: String? = nil, notice: String? = nil)
    case failed(Role, PageFailure)

    var hasEnded: Bool {
      switch self {
      case .done, .failed: true
      default: false
      }
    }

    /// The device about which a person is asked; nil: nobody is asked.
    var asked: DeviceID? {
      switch self {
      case .asking(_, let device, _, _): device.id
      case .showing(let summary, _): summary.device
      default: nil
      }
    }
  }

  enum Role: String {
    case inviter, joiner, creator
  }

  enum Job: Sendable {
    case invite
    case join(code: String, name: String, address: String?)
    case create(name: String)

    var role: Role {
      switch self {
      case .invite: .inviter
      case .join: .joiner
      case .create: .creator
      }
    }

    /// The state with which it begins.
    var beginning: State {
      switch self {
      case .invite: .opening
      case .join: .searching
      case .create: .creating
      }
    }
  }

  /// Takes a person's answer.
  private typealias Answer = @Sendable (Bool) -> Void

  /// Invitations end then, and after so many wrong codes (`Docs/Protocol/pairing.md`, "Inviting").
  private static let milliseconds: UInt64 = 600_000
  private static let tries = 3

  private struct Content {
    /// The number of the newest job. Older jobs, which may not have ended yet, change nothing.
    var number = 0
    var state: State?
    var answer: Answer?
    var task: Task<Void, Never>?
  }

  private let accounts: Accounts
  private let content = Mutex(Content())
  /// Raised after each change of ``state``.
  let changed = Signal()

  var state: State? { content.withLock { $0.state } }

  init(_ accounts: Accounts) { self.accounts = accounts }

  /// Returns once it is cancelled or its service group shuts down, and the pairing has ended.
  func run() async {
    try? await gracefulShutdown()
    cancel()
    await content.withLock { $0.task }?.value
  }

  /// - Throws: ``PageFailure`` if a pairing is under way.
  func begin(_ job: Job) throws(PageFailure) {
    let isBegun = content.withLock { content in
      guard content.state.map(\.hasEnded) ?? true else { return false }
      content.state = job.beginning
      content.number += 1
      content.answer = nil
      let (number, earlier) = (content.number, content.task)
      content.task = Task {
        earlier?.cancel()
        await earlier?.value
        if !Task.isCancelled { await perform(job, number) }
      }
      return true
    }
    guard isBegun else {
      throw PageFailure(
        .refused, "another pairing, or a new account, is under way; cancel it first")
    }
    changed.raise()
  }

  /// Answers the question about a device. Does nothing if another one is asked about by now: nobody
  /// has compared its fingerprint, or has its account's recovery key.
  func answer(_ isWanted: Bool, about device: DeviceID) {
    let answer = content.withLock { content -> Answer? in
      guard content.state?.asked == device else { return nil }
      defer { content.answer = nil }
      return content.answer
    }
    answer?(isWanted)
  }

  /// Ends the pairing, or forgets one that has ended.
  func cancel() {
    let (task, answer) = content.withLock { content -> (Task<Void, Never>?, Answer?) in
      content.state = nil
      defer { content.answer = nil }
      return (content.task, content.answer)
    }
    // In this order: the other person of a pairing is not told of a refusal.
    task?.cancel()
    answer?(false)
    changed.raise()
  }

  /// Does nothing, and returns false, once the pairing was cancelled, or another one has begun. With
  /// nil it has ended, and there is nothing to say.
  @discardableResult
  private func show(_ state: State?, _ number: Int, asking answer: Answer? = nil) -> Bool {
    let isShown = content.withLock { content in
      guard content.number == number, content.state != nil else { return false }
      (content.state, content.answer) = (state, answer)
      return true
    }
    changed.raise()
    return isShown
  }

  private func perform(_ job: Job, _ number: Int) async {
    do {
      switch job {
      case .invite:
        show(.done(.inviter, try await invite(number)), number)
      case .join(let code, let name, let address):
        show(try await join(code, name, address, number), number)
      case .create(let name):
        try await accounts.createAccount(name: name) { summary, recoveryKey throws(KithError) in
          guard self.isKept(recoveryKey, of: summary, number) else {
            throw KithError(.declined, "The account was not created.")
          }
        }
        show(nil, number)
      }
    } catch {
      show(.failed(job.role, PageFailure(error)), number)
    }
  }

  /// Returns what to show at the end.
  private func join(
    _ code: String, _ name: String, _ address: String?, _ number: Int
  ) async throws -> State {
    let newest = Mutex<JoinProgress?>(nil)
    var notice: String?
    do {
      try await accounts.signIn(
        code: code, name: name, address: address,
        onProgress: { progress in
          newest.withLock { $0 = progress }
          self.show(.pulling(progress), number)
        },
        confirm: { inviter, fingerprint in
          await self.ask(.joiner, inviter, fingerprint, notice: nil, number)
        })
      notice = try? await accounts.status().unshownNotice
    } catch {
      // Once the device exists it has joined, whatever failed afterwards.
      let isSignedOut = try? Accounts.isSignedOut(in: accounts.configuration.directory)
      guard isSignedOut == false else { throw error }
      notice = PageFailure(error).message
    }
    let partial = newest.withLock { $0?.partialNotice }
    return .done(.joiner, nil, partial: partial, notice: notice)
  }

  /// Shows the recovery key, and blocks until a person has written it down, or cancels. Each page
  /// that is opened meanwhile shows it too.
  private func isKept(_ recoveryKey: String, of summary: AccountSummary, _ number: Int) -> Bool {
    let isKept = Mutex(false)
    let isAnswered = DispatchSemaphore(value: 0)
    let isShown = show(.showing(summary, recoveryKey: recoveryKey), number) { answer in
      isKept.withLock { $0 = answer }
      isAnswered.signal()
    }
    guard isShown else { return false }
    isAnswered.wait()
    // Another page may have cancelled meanwhile.
    return isKept.withLock { $0 } && show(.creating, number)
  }

  private func invite(_ number: Int) async throws -> PairingDevice {
    let node = try await accounts.nodeAccess
    let ends = Moment.now + Self.milliseconds
    return try await node.invite(hasCode: true) { invitation in
      self.show(.waiting(invitation, triesLeft: Self.tries, ends: ends), number)
    } onWrongCode: { left in
      self.content.withLock { content in
        if content.number == number, case .waiting(let invitation, _, let ends) = content.state {
          content.state = .waiting(invitation, triesLeft: left, ends: ends)
        }
      }
      self.changed.raise()
    } onJoinRequest: { candidate in
      let status = try? await node.status()
      let notice = DuplicateNames.notice(
        candidate.name, candidate.fingerprint, among: status?.devices ?? [])
      let own = status?.device.map { Fingerprint(of: $0).description } ?? ""
      return await self.ask(.inviter, candidate, own, notice: notice, number)
    }
  }

  /// No answer means no.
  private func ask(
    _ role: Role, _ device: PairingDevice, _ fingerprint: String, notice: String?, _ number: Int
  ) async -> Bool {
    let (answers, answer) = AsyncStream<Bool>.makeStream()
    show(.asking(role, device, ownFingerprint: fingerprint, notice: notice), number) { isWanted in
      answer.yield(isWanted)
      answer.finish()
    }
    let isWanted = await answers.first { _ in true } ?? false
    if isWanted { show(.admitting(role), number) }
    return isWanted
  }
}

extension Pairing.State {
  var document: Document {
    let (role, name, members): (Pairing.Role, String, [String: Document?]) =
      switch self {
      case .opening: (.inviter, "opening", [:])
      case .waiting(let invitation, let triesLeft, let ends):
        (
          .inviter, "waiting",
          [
            "addresses": .strings(invitation.addresses), "code": .string(invitation.code),
            "endsMilliseconds": .int(ends),
            "qr": QRMatrix(caseless: invitation.token).map(\.document),
            "token": .string(invitation.token), "triesLeft": .int(triesLeft),
          ]
        )
      case .asking(let role, let device, let fingerprint, let notice):
        (
          role, "asking",
          [
            role == .inviter ? "candidate" : "inviter": PageDocuments.device(device),
            "notice": .string(notice), "ownFingerprint": .string(fingerprint),
          ]
        )
      case .admitting(let role): (role, "admitting", [:])
      case .searching: (.joiner, "searching", [:])
      case .creating: (.creator, "creating", [:])
      case .showing(let summary, let recoveryKey):
        (
          .creator, "showing",
          [
            "device": NodeStatus.Device(id: summary.device, name: summary.name).document,
            "recoveryKey": .string(recoveryKey),
          ]
        )
      case .pulling(let progress):
        (
          .joiner, "pulling",
          ["done": .int(progress.pulledStores), "total": .int(progress.stores)]
        )
      case .done(let role, let device, let partial, let notice):
        (
          role, "done",
          [
            "device": device.map(PageDocuments.device), "notice": .string(notice),
            "partial": .string(partial),
          ]
        )
      case .failed(let role, let failure): (role, "failed", ["error": failure.document])
      }
    return .object(
      members.merging(["role": .string(role.rawValue), "state": .string(name)]) { member, _ in
        member
      })
  }
}

extension QRMatrix {
  fileprivate var document: Document {
    let rows = (0..<width).map { line in
      String((0..<width).map { column in self[line, column] ? "1" : "0" })
    }
    return .object(["rows": .strings(rows), "width": .int(width)])
  }
}
