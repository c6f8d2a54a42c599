internal import NIOCore
internal import Synchronization

/// One direction of one connection: the bytes that have come and not passed yet.
///
/// One task puts bytes in, another takes them out. The held bytes are limited, so a stalled or slow
/// direction blocks the sender, as a full network would.
final class ProxyStream: Sendable {
  /// The end of a direction.
  enum End {
    /// The sender has closed its direction.
    case closed
    /// The sender's connection failed.
    case reset
  }

  /// The next step.
  enum Step {
    /// These bytes pass now.
    case pass(ByteBuffer)
    /// The connection is reset, after these bytes have passed.
    case reset(after: ByteBuffer)
    /// All bytes have passed, and the end may be passed on.
    case end(End)
    /// The connection was reset, or the task cancelled.
    case stopped
  }

  private struct State {
    var faults: FaultyProxy.Faults
    var byteFaults: ByteFaults
    var chunks: [(arrival: ContinuousClock.Instant, bytes: ByteBuffer)] = []
    var heldBytes = 0
    var end: (arrival: ContinuousClock.Instant, end: End)?
    var isAbandoned = false
    var isStopped = false
    /// The time at which the throttle lets the next byte pass.
    var nextPass = ContinuousClock.now
  }

  /// The number of pieces that a throttled direction passes each second.
  private static let piecesPerSecond = 50

  private let state: Mutex<State>
  private let limit: Int
  private let bell = Bell()
  private let count: @Sendable (ByteBuffer, _ corrupted: Int) -> Void

  /// Makes the direction of a new connection. It holds at most `limit` bytes and one read more.
  /// `count` is called with all bytes that pass.
  init(
    faults: FaultyProxy.Faults, seed: UInt64, limit: Int,
    count: @escaping @Sendable (ByteBuffer, _ corrupted: Int) -> Void
  ) {
    var byteFaults = ByteFaults(seed: seed)
    byteFaults.set(faults)
    state = Mutex(State(faults: faults, byteFaults: byteFaults))
    self.limit = limit
    self.count = count
  }

  /// Sets the faults from the next byte on.
  func set(_ faults: FaultyProxy.Faults) {
    state.withLock { state in
      state.faults = faults
      state.byteFaults.set(faults)
      state.nextPass = min(state.nextPass, .now)
    }
    bell.ring()
  }

  /// Stops all bytes.
  func abandon() {
    state.withLock { $0.isAbandoned = true }
  }

  /// Ends all waiting, because the connection is over.
  func stop() {
    state.withLock { $0.isStopped = true }
    bell.ring()
  }

  /// Adds the bytes of a connection until it ends.
  func fill(from inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async {
    do {
      for try await bytes in inbound { await hold(bytes) }
      finish(.closed)
    } catch {
      finish(.reset)
    }
  }

  private func hold(_ bytes: ByteBuffer) async {
    while !Task.isCancelled {
      let version = bell.version
      let isHeld = state.withLock { state in
        if state.isStopped { return true }
        guard state.heldBytes < limit else { return false }
        state.chunks.append((.now, bytes))
        state.heldBytes += bytes.readableBytes
        return true
      }
      if isHeld { return bell.ring() }
      await bell.wait(after: version)
    }
  }

  private func finish(_ end: End) {
    state.withLock { $0.end = (.now, end) }
    bell.ring()
  }

  /// Waits until bytes or the end may pass.
  func next() async -> Step {
    while !Task.isCancelled {
      let version = bell.version
      switch state.withLock({ Self.look(&$0, at: .now) }) {
      case .act(let step, let corrupted):
        bell.ring()
        if case .pass(let bytes) = step { count(bytes, corrupted) }
        if case .reset(let bytes) = step { count(bytes, corrupted) }
        return step
      case .stop: return .stopped
      case .wait(until: let moment?): await bell.wait(after: version, until: moment)
      case .wait(until: nil): await bell.wait(after: version)
      }
    }
    return .stopped
  }

  /// Waits until this direction is neither stalled nor abandoned. Returns false if the connection
  /// was reset or the task cancelled.
  func opened() async -> Bool {
    while !Task.isCancelled {
      let version = bell.version
      let isOpen: Bool? = state.withLock { state in
        if state.isStopped { return false }
        return state.isAbandoned || state.faults.isStalled ? nil : true
      }
      if let isOpen { return isOpen }
      await bell.wait(after: version)
    }
    return false
  }

  private enum Look {
    case act(Step, corrupted: Int)
    case wait(until: ContinuousClock.Instant?)
    case stop
  }

  private static func look(_ state: inout State, at now: ContinuousClock.Instant) -> Look {
    guard !state.isStopped else { return .stop }
    guard !state.isAbandoned, !state.faults.isStalled else { return .wait(until: nil) }
    let delay = max(state.faults.delay, .zero)
    guard var first = state.chunks.first else {
      guard let end = state.end else { return .wait(until: nil) }
      let due = end.arrival + delay
      return due <= now ? .act(.end(end.end), corrupted: 0) : .wait(until: due)
    }
    var due = first.arrival + delay
    var length = first.bytes.readableBytes
    if let rate = state.faults.bytesPerSecond.map({ max($0, 1) }) {
      due = max(due, state.nextPass)
      length = min(length, max(rate / piecesPerSecond, 1))
      guard due <= now else { return .wait(until: due) }
      state.nextPass = now + .seconds(1) * length / rate
    }
    guard due <= now, var bytes = first.bytes.readSlice(length: length) else {
      return .wait(until: due)
    }
    state.heldBytes -= length
    if first.bytes.readableBytes == 0 {
      state.chunks.removeFirst()
    } else {
      state.chunks[0] = first
    }
    let outcome = state.byteFaults.apply(to: &bytes)
    if let passing = outcome.resetAfter {
      let before = bytes.readSlice(length: passing) ?? ByteBuffer()
      return .act(.reset(after: before), corrupted: outcome.corrupted)
    }
    return .act(.pass(bytes), corrupted: outcome.corrupted)
  }
}
