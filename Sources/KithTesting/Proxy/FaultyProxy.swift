internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A TCP proxy that does what bad networks do, between real programs, on purpose and repeatably.
///
/// It listens on a port of loopback and passes each connection on to a target's port. Programs are
/// told the proxy's port instead of the target's. What it does wrong is set, and set anew, while they
/// run, in each direction by itself:
///
/// ```swift
/// try await FaultyProxy.with(target: serverPort) { proxy in
///   // … start a client that dials 127.0.0.1:proxy.port …
///   proxy.set(.init(delay: .milliseconds(50)))                       // a long way
///   proxy.set(.init(isStalled: true), direction: .forward)           // a one-way partition
///   proxy.set(.init(corruption: .every(10_000)), direction: .backward)
///   proxy.cut()                                                      // everything resets
///   proxy.mend()                                                     // all is well again
/// }
/// ```
///
/// | fault | how |
/// | --- | --- |
/// | delay, throttle, corruption, loss by reset, one-way or two-way partition | ``set(_:direction:)`` with ``Faults`` |
/// | all connections break, and no new one is served | ``cut()`` |
/// | all connections break, new ones are served | ``reset()`` |
/// | half-open: nothing passes, and neither side ever learns | ``abandon()`` |
/// | no fault any more | ``mend()`` |
///
/// **Repeatable.** All choices follow from ``Configuration/seed``: connection 3 has the same bytes
/// altered in each run. When bytes come is up to the programs.
///
/// **Bounded.** Of each direction of each connection at most
/// ``Configuration/heldBytesLimit`` bytes wait, and a read or two; who sends more has to wait. More
/// connections than ``Configuration/connectionLimit`` are reset.
///
/// All methods may be called from any thread, and take effect without being awaited.
public final class FaultyProxy: Sendable {
  /// Where a proxy listens, and its bounds.
  public struct Configuration: Sendable, Hashable {
    /// The address to listen on.
    public var host = "127.0.0.1"
    /// The port to listen on; 0: any that is free.
    public var port = 0
    /// The target's address.
    public var targetHost = "127.0.0.1"
    /// Where the target sees connections come from; nil: the system chooses.
    ///
    /// Programs that dial back where a peer came from (as Kith's nodes do) would go round the proxy.
    /// Another address of loopback, such as `127.0.0.9`, on which nobody listens, prevents that.
    public var sourceHost: String?
    /// What random choices follow from.
    public var seed: UInt64 = 0
    /// How many bytes of each direction, all connections together, are kept for
    /// ``FaultyProxy/recorded(_:)``; 0: none.
    public var recordingLimitBytes = 0
    /// How many bytes may wait in each direction of a connection; at least 1.
    public var heldBytesLimit = 1 << 20
    /// How many connections may be open; at least 1.
    public var connectionLimit = 4_096

    /// The defaults.
    public init() {}
  }

  /// What a proxy has done so far.
  public struct Counters: Sendable, Hashable {
    /// Connections that clients made.
    public var accepted = 0
    /// Those that are open now, abandoned ones included.
    public var open = 0
    /// Those that were reset at once, because the proxy was cut or had too many.
    public var refused = 0
    /// Those that a fault, ``FaultyProxy/cut()`` or ``FaultyProxy/reset()`` reset.
    public var reset = 0
    /// Bytes that went on towards the target.
    public var forwardBytes = 0
    /// Bytes that went back from the target.
    public var backwardBytes = 0
    /// Bytes of both directions that were altered.
    public var corruptedBytes = 0
  }

  struct State {
    var faults: [Direction.RawValue: Faults] = [:]
    var isCut = false
    var connections: [Int: ProxyConnection] = [:]
    var counters = Counters()
    var recordings: [Direction.RawValue: [UInt8]] = [:]
  }

  /// Where it listens.
  public let port: Int
  let target: Int
  let configuration: Configuration
  let state = Mutex(State())

  init(port: Int, target: Int, configuration: Configuration) {
    (self.port, self.target, self.configuration) = (port, target, configuration)
  }

  // MARK: Faults

  /// Does this to all bytes of a direction that have not passed yet, on connections that are open and
  /// on new ones, in place of what was set before.
  ///
  /// - Complexity: O(*n*) in the open connections.
  public func set(_ faults: Faults, direction: Direction = .both) {
    let connections = state.withLock { state in
      for one in [Direction.forward, .backward] where direction.contains(one) {
        state.faults[one.rawValue] = faults
      }
      return state.connections.values
    }
    for connection in connections {
      if direction.contains(.forward) { connection.forward.set(faults) }
      if direction.contains(.backward) { connection.backward.set(faults) }
    }
  }

  /// Resets all connections, and every new one at once, until ``mend()``.
  ///
  /// The port stays the proxy's own, so a new connection is made and then reset (RST), which is as near
  /// to a refusal as a port can come that nobody else shall take.
  public func cut() {
    state.withLock { $0.isCut = true }
    reset()
  }

  /// Resets all connections, but for abandoned ones. New ones are served.
  public func reset() {
    for connection in state.withLock({ $0.connections.values }) where connection.reset() {
      countReset()
    }
  }

  /// Leaves all connections that are open now half-open, for good: nothing passes any more, in either
  /// direction, and neither side ever learns of it, whatever the other does, until the proxy ends. New
  /// connections are served.
  public func abandon() {
    for connection in state.withLock({ $0.connections.values }) { connection.abandon() }
  }

  /// Ends all faults and a cut. What was held passes. Abandoned connections stay as they are.
  public func mend() {
    state.withLock { $0.isCut = false }
    set(.none)
  }

  // MARK: What passed

  /// What it has done so far.
  public var counters: Counters {
    state.withLock { state in
      var counters = state.counters
      counters.open = state.connections.count
      return counters
    }
  }

  /// The first bytes that passed in a direction (in both: first forward, then backward), as they
  /// passed, connections mixed, up to ``Configuration/recordingLimitBytes`` a direction.
  ///
  /// - Complexity: O(*n*) in the bytes.
  public func recorded(_ direction: Direction) -> [UInt8] {
    state.withLock { state in
      [Direction.forward, .backward].filter(direction.contains).flatMap {
        state.recordings[$0.rawValue] ?? []
      }
    }
  }

  func countReset() {
    state.withLock { $0.counters.reset += 1 }
  }

  func count(_ bytes: ByteBuffer, corrupted: Int, _ direction: Direction) {
    state.withLock { state in
      if direction == .forward {
        state.counters.forwardBytes += bytes.readableBytes
      } else {
        state.counters.backwardBytes += bytes.readableBytes
      }
      state.counters.corruptedBytes += corrupted
      let room =
        configuration.recordingLimitBytes - (state.recordings[direction.rawValue]?.count ?? 0)
      if room > 0 {
        state.recordings[direction.rawValue, default: []] += bytes.readableBytesView.prefix(room)
      }
    }
  }
}
