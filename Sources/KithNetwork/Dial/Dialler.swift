internal import Glibc
package import KithCore
package import KithCrypto
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

enum DialTarget: Hashable, Comparable, Sendable {
  case address(PeerAddress)
  case device(DeviceID)
}

struct Dial: Equatable, Sendable {
  var target: DialTarget
  var address: PeerAddress
  /// Modulo the number of pre-shared keys; 0: the newest.
  var pskIndex: Int
}

package enum DialFailure: Hashable, Sendable {
  /// No connection.
  case unreachable(NetworkFailure.Reason)
  /// The handshake failed: another account, another program, an older key, or no answer in time.
  case refused
  /// Another device than the expected one answered.
  case anotherDevice
  /// This node has no free session.
  case noRoom
  /// This node has no pre-shared key, because it was revoked.
  case noKey
  case ourselves
}

/// The last finished call of an address.
package struct DialAttempt: Hashable, Sendable {
  /// When it began, since 1970.
  package var milliseconds: UInt64
  /// Nil: a session began.
  package var failure: DialFailure?
}

/// An address that a node calls, and what came of it.
package struct DialledAddress: Hashable, Sendable {
  package var address: PeerAddress
  /// The device that is looked for there; nil: any, as a person named the address.
  package var device: DeviceID?
  /// Whether the device is only heard there, and the address is not remembered.
  package var isOnlyHeard = false
  /// The static key met there last.
  package var key: TransportPublicKey?
  /// Nil: it was not called since the start, or the first call goes on.
  package var attempt: DialAttempt?
  /// How many calls of the target have ended.
  package var ended = 0
  /// Whether there is a session at the address.
  package var isConnected = false

  package init(address: PeerAddress) { self.address = address }
}

/// A dialled connection before its session. Belongs to its channel's event loop.
final class DialledConnection: DiallerHandshakeOwner {
  struct Ourselves: Error {}
  /// Malformed, or with a version that was not offered.
  struct WrongHello: Error {}

  private let transport: Transport
  private let dial: Dial
  private let pskIndex: Int
  private var hello: Hello?
  /// This node has too many sessions.
  private var isRefused = false

  init(transport: Transport, dial: Dial, pskIndex: Int) {
    self.transport = transport
    self.dial = dial
    self.pskIndex = pskIndex
  }

  func offer() -> [UInt8] { Offer.current.encoded() }

  func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8] {
    guard let hello = Hello(decoding: reply), Offer.current.versions.contains(hello.version) else {
      throw WrongHello()
    }
    self.hello = hello
    var answer = transport.delegate.hello()
    // The same key in another process is a clone: both sides must detect it.
    if key == transport.keys.transportPublicKey, hello.process == answer.process {
      throw Ourselves()
    }
    answer.version = hello.version
    return answer.encoded()
  }

  func finished(_ exchange: NoiseExchange) -> SessionHandler? {
    guard let hello else { return nil }
    let handler = transport.establish(
      exchange, hello: hello, pskIndex: pskIndex, address: dial.address.description, dial: dial)
    isRefused = handler == nil
    return handler
  }

  func failed(_ error: (any Error)?) {
    if error is Ourselves {
      transport.dialler.failed(dial, .ourselves)
    } else if isRefused {
      transport.dialler.failed(dial, .noRoom)
    } else {
      transport.delegate.noted(.handshakeFailed)
      transport.dialler.failed(dial, .refused)
    }
  }
}
