import KithCrypto
import KithTestSupport
import NIOCore
import Synchronization
import Testing

@testable import KithCore
@testable import KithNetwork

/// A replica behind a transport, with a disk in memory.
final class ReplicaNode: TransportOwner {
  struct State {
    var replica: Replica
    var live: [SessionID] = []
    var closedCount = 0
    var events: [TransportEvent: Int] = [:]
    /// The `Have`s that came and were dealt with.
    var haves = 0
  }

  let keys: DeviceKeys
  /// Whether nothing is read from new sessions.
  let pausesSessions: Bool
  let state: Mutex<State>
  let transportBox = Mutex<Transport?>(nil)
  private let storage = MemoryStorage()
  private let account: AccountID
  private let now = Instant(wallMilliseconds: 1_800_000_000_000, monotonicMilliseconds: 0)

  init(_ replica: Replica, keys: DeviceKeys, pausesSessions: Bool = false) {
    self.keys = keys
    self.pausesSessions = pausesSessions
    account = replica.account
    state = Mutex(State(replica: replica))
    input(.start(isCopy: false))
  }

  var live: [SessionID] { state.withLock { $0.live } }
  var transport: Transport? { transportBox.withLock { $0 } }
  func setTransport(_ transport: Transport?) { transportBox.withLock { $0 = transport } }

  /// Of a session all inputs come from one thread, and so do all effects.
  func input(_ input: Input) {
    let effects = state.withLock { state in
      let effects = state.replica.handle(input, at: now)
      guard state.replica.needsFlush else { return effects }
      return effects + state.replica.handle(.flush, at: now)
    }
    for effect in effects {
      switch effect {
      case .persist(let mutations): try? storage.commit(mutations)
      case .send(let session, let message), .sendEarly(let session, let message):
        transport?.send(session, message)
      case .sendStored(let session, let batch):
        _ = try? batch.forEachMessage(from: storage) { transport?.send(session, $0) }
      case .awaitDrain(let session): transport?.awaitDrain(session)
      case .promote(let session): transport?.promote(session)
      case .close(let session, let reason): transport?.close(session, reason: reason)
      default: break
      }
    }
  }

  func presharedKeys() -> [SharedPresharedKey] {
    state.withLock { $0.replica.keyring.newestFirst.map { SharedPresharedKey($0.psk.copy()) } }
  }

  func unauthenticatedRefused(_ host: String) {}

  func noted(_ event: TransportEvent) { state.withLock { $0.events[event, default: 0] += 1 } }
  func count(of event: TransportEvent) -> Int { state.withLock { $0.events[event] ?? 0 } }

  func isKnown(_ key: TransportPublicKey) -> Bool {
    state.withLock { $0.replica.roster.device(withTransportKey: key) != nil }
  }

  func hello() -> Hello { state.withLock { $0.replica.hello(port: 0, at: now) } }

  func sessionOpened(_ id: SessionID, _ peer: SessionPeer) {
    if pausesSessions { transport?.setReading(id, false) }
    state.withLock { $0.live.append(id) }
    input(.connected(id, peer))
  }

  func sessionReceived(_ id: SessionID, _ message: [UInt8]) {
    guard let inbound = InboundMessage(decoding: message, account: account) else {
      transport?.close(id, reason: .protocolViolation)
      return
    }
    input(.received(id, inbound))
    if case .have = inbound.body { state.withLock { $0.haves += 1 } }
  }

  func dialEnded() {}
  func sessionWritable(_ id: SessionID, _ isWritable: Bool) { input(.writable(id, isWritable)) }
  func sessionDrained(_ id: SessionID) { input(.drained(id)) }

  func sessionClosed(_ id: SessionID) {
    state.withLock { state in
      state.live.removeAll { $0 == id }
      state.closedCount += 1
    }
    input(.disconnected(id))
  }
}

@Suite(.timeLimit(.minutes(5)))
struct CatchingUpTests {
  /// Two devices of one account.
  private func devices() throws -> (one: ReplicaNode, two: ReplicaNode) {
    var random = SeededEntropy(seed: 180)
    let founder = Founder(devices: 2, entropy: &random)
    var nodes: [ReplicaNode] = []
    for member in founder.members {
      let replica = try Replica(
        account: founder.account, keys: member.keys, snapshot: member.snapshot,
        process: ProcessID(random.draw()),
        entropy: SeededEntropy(seed: 181 + UInt64(nodes.count)))
      nodes.append(ReplicaNode(replica, keys: member.keys, pausesSessions: !nodes.isEmpty))
    }
    return (nodes[0], nodes[1])
  }

  @Test func aReaderThatTakesItsTimeOverMoreThan40MBHadItsSessionClosed() async throws {
    let (one, two) = try devices()
    let value = try EncodedValue(.string(String(repeating: "x", count: 1_000_000)))
    for number in 0..<42 {
      let store = try #require(StoreIdentifier("com.example.full\(number)"))
      let write = WriteID(rawValue: UInt64(number))
      for node in [one, two] { node.input(.open(store, .standard)) }
      one.input(.write(write, store, [KithCore.Operation(key: "full", value: value)]))
    }
    var configuration = testConfiguration()
    // The kernels take some 10 MiB of 42 MB; of the rest half would be too much.
    configuration.queueLimit = 16 << 20
    try await withTransports([one, two], configuration) { transports, addresses in
      transports[0].addTarget(addresses[1])
      // It has asked for everything, and reads none of it.
      try await eventually("asked") { one.state.withLock { $0.haves } > 0 }
      #expect(transports[0].count(of: .overflowed) == 0)
      try await eventually("met") { two.live.count == 1 }
      transports[1].setReading(two.live[0], true)
      try await eventually("caught up") {
        two.state.withLock { state in
          state.replica.storeIdentifiers.allSatisfy { !state.replica.view(of: $0).isEmpty }
        }
      }
      for store in one.state.withLock({ $0.replica.storeIdentifiers }) {
        let view = two.state.withLock { $0.replica.view(of: store) }
        #expect(view.values.map(\.size) == [value.size])
      }
      #expect(transports[0].count(of: .overflowed) == 0)
      #expect(one.state.withLock { $0.closedCount } == 0)
    }
  }
}
