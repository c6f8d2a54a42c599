internal import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// Makes the attempts of a ``DialSchedule``.
final class Dialler: Sendable {
  private struct State {
    var schedule: DialSchedule
    var timer: Scheduled<Void>?
    /// Nil while stopped.
    var act: Act?
  }

  /// Makes each attempt and reports its result, and ends the surplus sessions.
  typealias Act = @Sendable (_ dials: [Dial], _ surplus: [SessionID]) -> Void

  private let state: Mutex<State>
  private let eventLoop = Bootstraps.group.next()
  private let entropy: SharedEntropy

  init(configuration: TransportConfiguration, entropy: SharedEntropy) {
    let overlay = OverlayPlan(seed: entropy.number())
    state = Mutex(State(schedule: DialSchedule(configuration: configuration, overlay: overlay)))
    self.entropy = entropy
  }

  func start(_ act: @escaping Act) {
    change { $0.act = act }
  }

  func stop() {
    let timer = state.withLock { state in
      state.act = nil
      defer { state.timer = nil }
      return state.timer
    }
    timer?.cancel()
  }

  func update(_ body: (inout DialSchedule) -> Void) {
    change { body(&$0.schedule) }
  }

  func sessions(with key: TransportPublicKey, butAt host: String) -> [SessionID] {
    state.withLock { $0.schedule.sessions(with: key, butAt: host) }
  }

  func opened(_ id: SessionID, key: TransportPublicKey, address: String, by dial: Dial?) {
    let random = entropy.fraction()
    update {
      $0.opened(id, key: key, address: address, by: dial, at: Self.now, random: random)
    }
  }

  func failed(_ dial: Dial, _ failure: DialFailure) {
    let random = entropy.fraction()
    update { $0.failed(dial, failure, at: Self.now, random: random) }
  }

  func closed(_ id: SessionID, reason: CloseReason?) {
    let random = entropy.fraction()
    update { $0.closed(id, reason: reason, at: Self.now, random: random) }
  }

  /// The timers' clock, in milliseconds.
  static var now: UInt64 { NIODeadline.now().uptimeNanoseconds / 1_000_000 }

  /// Makes the due attempts after the lock is released.
  private func change(_ body: (inout State) -> Void) {
    let work = state.withLock { state -> (@Sendable () -> Void)? in
      body(&state)
      guard let act = state.act else { return nil }
      let now = Self.now
      let dials = state.schedule.takeDue(at: now)
      state.timer?.cancel()
      state.timer = state.schedule.nextDue().map { due in
        eventLoop.scheduleTask(in: .milliseconds(Int64(due > now ? due - now : 0) + 1)) {
          self.change { _ in }
        }
      }
      let surplus = state.schedule.takeSurplus()
      return { act(dials, surplus) }
    }
    work?()
  }
}
