internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A TCP proxy with the faults of bad networks, between real programs, on demand and repeatable.
///
/// It listens on a port of loopback and passes each connection on to a target's port. Configure
/// programs with the proxy's port instead of the target's. Faults can be changed while the programs
/// run, separately for each direction:
///
/// ```swift
/// try await FaultyProxy.with(target: serverPort) { proxy in
///   // … start a client that dials 127.0.0.1:proxy.port …
///   proxy.set(.init(delay: .milliseconds(50)))                       // a distant peer
///   proxy.set(.init(isStalled: true), direction: .forward)           // a one-way partition
///   proxy.set(.init(corruption: .every(10_000)), direction: .backward)
///   proxy.cut()                                                      // all connections are reset
///   proxy.mend()                                                     // no fault any more
/// }
/// ```
///
/// | fault | call |
/// | --- | --- |
/// | delay, throttle, corruption, loss by reset, one-way or two-way partition | ``set(_:direction:)`` with ``Faults`` |
/// | all connections break, and no new one is served | ``cut()`` |
/// | all connections break, new ones are served | ``reset()`` |
/// | half-open: nothing passes, and neither side ever learns | ``abandon()`` |
/// | no fault any more | ``mend()`` |
///
/// **Repeatable.** All choices follow from ``Configuration/seed``: connection 3 has the same bytes
/// altered in each run. The timing depends on the programs.
///
/// **Bounded.** Each direction of each connection holds at most ``Configuration/heldBytesLimit``
/// bytes, and a read or two; beyond that the sender is blocked. Connections above
/// ``Configuration/connectionLimit`` are reset.
///
/// All methods may be called from any thread, and take effect without being awaited.
package final class FaultyProxy: Sendable {
  /// The addresses and the limits of a proxy.
  package struct Configuration: Sendable, Hashable {
    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port to listen on; 0: any that is free.
    package var port = 0
    /// The target's address.
    package var targetHost = "127.0.0.1"
    /// The source address of connections to the target; nil: the system chooses.
    ///
    /// A program may dial back to a peer's source address, as Kith's nodes do, and bypass
    /// the proxy. To prevent this, choose another loopback address without a listener, such
    /// as `127.0.0.9`.
    package var sourceHost: String?
    /// The seed of all random choices.
    package var seed: UInt64 = 0
    /// The number of bytes kept for ``FaultyProxy/recorded(_:)`` in each direction, over all
    /// connections; 0: none.
    package var recordingLimitBytes = 0
    /// The number of bytes that may wait in each direction of a connection; at least 1.
    package var heldBytesLimit = 1 << 20
    /// The number of connections that may be open; at least 1.
    package var connectionLimit = 4_096

    /// The defaults.
    package init() {}
  }

  /// The counters of a proxy.
  package struct Counters: Sendable, Hashable {
    /// Connections from clients.
    package var accepted = 0
    /// Connections open now, including abandoned ones.
    package var open = 0
    /// Connections that were reset at once, because the proxy was cut or had too many.
    package var refused = 0
    /// Connections that were reset by a fault, ``FaultyProxy/cut()`` or ``FaultyProxy/reset()``.
    package var reset = 0
    /// Bytes that were passed to the target.
    package var forwardBytes = 0
    /// Bytes that were passed back from the target.
    package var backwardBytes = 0
    /// Altered bytes of both directions.
    package var corruptedBytes = 0
  }

  struct State {
    var faults: [Direction.RawValue: Faults] = [:]
    var isCut = false
    var connections: [Int: ProxyConnection] = [:]
    var counters = Counters()
    var recordings: [Direction.RawValue: [UInt8]] = [:]
  }

  /// The port that the proxy listens on.
  package let port: Int
  let target: Int
  let configuration: Configuration
  let state = Mutex(State())

  init(port: Int, target: Int, configuration: Configuration) {
    (self.port, self.target, self.configuration) = (port, target, configuration)
  }

  // MARK: Faults

  /// Sets the faults of a direction, in place of earlier ones.
  ///
  /// They apply to all bytes that have not passed yet, on open and on new connections.
  ///
  /// - Complexity: O(*n*) in the open connections.
  package func set(_ faults: Faults, direction: Direction = .both) {
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
  /// The proxy keeps its port, so that no other program takes it. A new connection is therefore
  /// accepted and then reset (RST), instead of refused.
  package func cut() {
    state.withLock { $0.isCut = true }
    reset()
  }

  /// Resets all connections except abandoned ones. New ones are served.
  package func reset() {
    for connection in state.withLock({ $0.connections.values }) where connection.reset() {
      countReset()
    }
  }

  /// Leaves all open connections half-open until the proxy ends: nothing passes in either
  /// direction, and neither side learns of it, even if the other side closes.
  ///
  /// New connections are served.
  package func abandon() {
    for connection in state.withLock({ $0.connections.values }) { connection.abandon() }
  }

  /// Ends all faults and a cut. Held bytes pass. Abandoned connections stay abandoned.
  package func mend() {
    state.withLock { $0.isCut = false }
    set(.none)
  }

  // MARK: Passed bytes

  /// The counters so far.
  package var counters: Counters {
    state.withLock { state in
      var counters = state.counters
      counters.open = state.connections.count
      return counters
    }
  }

  /// Returns the first bytes that passed in a direction, connections mixed, up to
  /// ``Configuration/recordingLimitBytes`` for each direction.
  ///
  /// For both directions, forward comes first.
  ///
  /// - Complexity: O(*n*) in the bytes.
  package func recorded(_ direction: Direction) -> [UInt8] {
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
