internal import Glibc
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
    var onEnd: (@Sendable () -> Void)?
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

  /// `onEnd` is called after each attempt.
  func start(_ act: @escaping Act, onEnd: @escaping @Sendable () -> Void) {
    change { ($0.act, $0.onEnd) = (act, onEnd) }
  }

  func stop() {
    let timer = state.withLock { state in
      (state.act, state.onEnd) = (nil, nil)
      defer { state.timer = nil }
      return state.timer
    }
    timer?.cancel()
  }

  func update(_ body: (inout DialSchedule) -> Void) {
    change { body(&$0.schedule) }
  }

  var addresses: [DialledAddress] { state.withLock { $0.schedule.addresses } }

  func sessions(with key: TransportPublicKey, butAt host: String) -> [SessionID] {
    state.withLock { $0.schedule.sessions(with: key, butAt: host) }
  }

  func opened(_ id: SessionID, key: TransportPublicKey, address: String, by dial: Dial?) {
    let random = entropy.fraction()
    update {
      $0.opened(id, key: key, address: address, by: dial, at: Self.now, random: random)
    }
    if dial != nil { tellEnd() }
  }

  func failed(_ dial: Dial, _ failure: DialFailure) {
    let random = entropy.fraction()
    update { $0.failed(dial, failure, at: Self.now, random: random) }
    tellEnd()
  }

  private func tellEnd() { state.withLock { $0.onEnd }?() }

  func closed(_ id: SessionID, reason: CloseReason?) {
    let random = entropy.fraction()
    update { $0.closed(id, reason: reason, at: Self.now, random: random) }
  }

  /// The timers' clock, in milliseconds.
  static var now: UInt64 { NIODeadline.now().uptimeNanoseconds / 1_000_000 }

  /// The host's clock, in milliseconds since 1970.
  private static var wallMilliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(clamping: time.tv_sec * 1_000 + time.tv_nsec / 1_000_000)
  }

  /// Makes the due attempts after the lock is released.
  private func change(_ body: (inout State) -> Void) {
    let work = state.withLock { state -> (@Sendable () -> Void)? in
      body(&state)
      guard let act = state.act else { return nil }
      let now = Self.now
      let dials = state.schedule.takeDue(at: now, milliseconds: Self.wallMilliseconds)
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
