internal import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// Makes the attempts of a ``DialSchedule``.
final class Dialler: Sendable {
  private struct State {
    var schedule: DialSchedule
    var timer: Scheduled<Void>?
    var isRunning = false
  }

  private let state: Mutex<State>
  private let eventLoop: any EventLoop
  private let entropy: SharedEntropy
  private let connect: Mutex<(@Sendable (Dial) -> Void)?> = Mutex(nil)
  private let close: Mutex<(@Sendable (SessionID) -> Void)?> = Mutex(nil)

  init(delays: DialSchedule.Delays, eventLoop: any EventLoop, entropy: SharedEntropy) {
    let overlay = OverlayPlan(seed: entropy.number())
    state = Mutex(State(schedule: DialSchedule(delays: delays, overlay: overlay)))
    self.eventLoop = eventLoop
    self.entropy = entropy
  }

  /// `connect` makes one attempt and reports its result; `close` ends a surplus session.
  func start(
    _ connect: @escaping @Sendable (Dial) -> Void,
    close: @escaping @Sendable (SessionID) -> Void
  ) {
    self.connect.withLock { $0 = connect }
    self.close.withLock { $0 = close }
    change { $0.isRunning = true }
  }

  func stop() {
    let timer = state.withLock { state in
      state.isRunning = false
      defer { state.timer = nil }
      return state.timer
    }
    timer?.cancel()
    connect.withLock { $0 = nil }
    close.withLock { $0 = nil }
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
    let (dials, surplus) = state.withLock { state -> ([Dial], [SessionID]) in
      body(&state)
      guard state.isRunning else { return ([], []) }
      let now = Self.now
      let dials = state.schedule.takeDue(at: now)
      state.timer?.cancel()
      state.timer = state.schedule.nextDue().map { due in
        eventLoop.scheduleTask(in: .milliseconds(Int64(due > now ? due - now : 0) + 1)) {
          self.change { _ in }
        }
      }
      return (dials, state.schedule.takeSurplus())
    }
    if !surplus.isEmpty, let close = close.withLock({ $0 }) {
      for session in surplus { close(session) }
    }
    guard !dials.isEmpty, let connect = connect.withLock({ $0 }) else { return }
    for dial in dials { connect(dial) }
  }
}
