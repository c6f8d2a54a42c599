import KithCore
import KithCrypto
import KithTestSupport
import Logging
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import KithNetwork

func psk(_ number: UInt64) -> SharedPresharedKey {
  var entropy = SeededEntropy(seed: 1000 + number)
  return SharedPresharedKey(PresharedKey(random: &entropy))
}

func deviceKeys(_ number: UInt64) -> DeviceKeys {
  var entropy = SeededEntropy(seed: number)
  return Founder.makeKeys(&entropy)
}

/// A delegate whose transport ``withTransports(_:_:_:)`` makes.
protocol TransportOwner: TransportDelegate {
  var keys: DeviceKeys { get }
  var live: [SessionID] { get }
  func setTransport(_ transport: Transport?)
  func count(of event: TransportEvent) -> Int
}

/// A delegate that remembers what it was told.
final class TestNode: TransportOwner {
  struct State {
    var psks: [SharedPresharedKey] = []
    var members: Set<TransportPublicKey> = []
    var opened: [SessionID: SessionPeer] = [:]
    var live: [SessionID] = []
    var received: [[UInt8]] = []
    var writable: [Bool] = []
    var roomCount = 0
    var closedCount = 0
    var unauthenticated: [String] = []
    var events: [TransportEvent: Int] = [:]
    var echoes = false
    /// Whether each message pauses its session.
    var pauses = false
  }

  let keys: DeviceKeys
  let state: Mutex<State>
  let transportBox = Mutex<Transport?>(nil)

  init(_ number: UInt64, psks: [SharedPresharedKey], members: [UInt64] = [1, 2, 3]) {
    keys = deviceKeys(number)
    state = Mutex(
      State(
        psks: psks, members: Set(members.map { deviceKeys($0).transportPublicKey })))
  }

  var transport: Transport? { transportBox.withLock { $0 } }
  func setTransport(_ transport: Transport?) { transportBox.withLock { $0 = transport } }
  var live: [SessionID] { state.withLock { $0.live } }
  var received: [[UInt8]] { state.withLock { $0.received } }

  func presharedKeys() -> [SharedPresharedKey] { state.withLock { $0.psks } }
  func isKnown(_ key: TransportPublicKey) -> Bool { state.withLock { $0.members.contains(key) } }

  func hello() -> Hello {
    Hello(
      version: 0, clock: HybridTime(milliseconds: 5), isSynchronised: true,
      process: ProcessID(Digest128(storage: Bytes16())),
      rosterDigest: Digest256(storage: Bytes32()), port: 0)
  }

  func unauthenticatedRefused(_ host: String) { state.withLock { $0.unauthenticated.append(host) } }

  func sessionOpened(_ id: SessionID, _ peer: SessionPeer) {
    state.withLock {
      $0.opened[id] = peer
      $0.live.append(id)
    }
  }

  func sessionReceived(_ id: SessionID, _ message: [UInt8]) {
    let (echoes, pauses) = state.withLock { state in
      if !state.echoes { state.received.append(message) }
      return (state.echoes, state.pauses)
    }
    if pauses { transport?.setReading(id, false) }
    if echoes { transport?.send(id, message) }
  }

  func dialEnded() {}

  func noted(_ event: TransportEvent) { state.withLock { $0.events[event, default: 0] += 1 } }
  func count(of event: TransportEvent) -> Int { state.withLock { $0.events[event] ?? 0 } }

  func sessionWritable(_ id: SessionID, _ isWritable: Bool) {
    state.withLock { $0.writable.append(isWritable) }
  }

  func sessionDrained(_ id: SessionID) {
    state.withLock { $0.roomCount += 1 }
  }

  func sessionClosed(_ id: SessionID) {
    state.withLock { state in
      state.live.removeAll { $0 == id }
      state.closedCount += 1
    }
  }
}

extension Transport {
  func send(_ id: SessionID, _ message: [UInt8]) { send(id, [message]) }

  /// The events that its owner was told.
  func count(of event: TransportEvent) -> Int {
    (delegate as? any TransportOwner)?.count(of: event) ?? 0
  }
}

/// A configuration for tests: one loopback host, any port, short times.
func testConfiguration(
  hosts: [String] = ["127.0.0.1"], handshake: Duration = .seconds(5)
) -> TransportConfiguration {
  var configuration = TransportConfiguration()
  configuration.hosts = hosts
  configuration.port = 0
  configuration.handshakeTimeout = handshake
  configuration.leastRedialMilliseconds = 20
  configuration.mostRedialMilliseconds = 100
  configuration.lingerTimeout = .milliseconds(500)
  return configuration
}

/// Runs transports for the time of `body`, and checks that they end when cancelled.
func withTransports(
  _ nodes: [any TransportOwner], _ configuration: TransportConfiguration = testConfiguration(),
  _ body: ([Transport], [PeerAddress]) async throws -> Void
) async throws {
  var transports: [Transport] = []
  var addresses: [PeerAddress] = []
  for node in nodes {
    var logger = Logger(label: "test")
    logger.logLevel = .error
    let transport = Transport(
      configuration: configuration, keys: node.keys, delegate: node, logger: logger)
    node.setTransport(transport)
    transports.append(transport)
    addresses += try await transport.bind()
  }
  try await withThrowingTaskGroup { tasks in
    for transport in transports { tasks.addTask { try await transport.run() } }
    let result: Result<Void, any Error>
    do { result = .success(try await body(transports, addresses)) } catch {
      result = .failure(error)
    }
    tasks.cancelAll()
    try await tasks.waitForAll()
    try result.get()
  }
  for node in nodes {
    #expect(node.live.isEmpty)
    node.setTransport(nil)
  }
}

/// Runs the transports of two devices that have met; the first dialled.
func withSession(
  _ one: TestNode, _ two: TestNode, _ configuration: TransportConfiguration = testConfiguration(),
  _ body: ([Transport]) async throws -> Void
) async throws {
  try await withTransports([one, two], configuration) { transports, addresses in
    transports[0].addTarget(addresses[1])
    try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
    try await body(transports)
  }
}

/// A plain TCP client that says what it is told and collects what it hears.
final class RawClient: Sendable {
  final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    let client: RawClient
    init(_ client: RawClient) { self.client = client }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(buffer: unwrapInboundIn(data))
      client.heardBytes.withLock { $0 += bytes }
    }
    func channelInactive(context: ChannelHandlerContext) {
      client.closedFlag.withLock { $0 = true }
    }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }

  private let heardBytes = Mutex<[UInt8]>([])
  private let closedFlag = Mutex(false)
  private let channelBox = Mutex<(any Channel)?>(nil)

  var heard: [UInt8] { heardBytes.withLock { $0 } }
  var isClosed: Bool { closedFlag.withLock { $0 } }

  static func connect(to address: PeerAddress) async throws -> RawClient {
    let client = RawClient()
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Collector(client))
        }
      }
      .connect(host: address.host, port: Int(address.port)).get()
    client.channelBox.withLock { $0 = channel }
    return client
  }

  func say(_ bytes: [UInt8]) {
    guard let channel = channelBox.withLock({ $0 }) else { return }
    channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
  }

  func close() async throws {
    do {
      try await channelBox.withLock { $0 }?.close()
    } catch ChannelError.alreadyClosed {
      // The other side was faster.
    }
  }
}

extension PairingError {
  static func nothingListens(at address: PeerAddress) -> Self {
    .cannotConnect(
      NetworkFailure(host: address.host, port: address.port, reason: .nothingListens))
  }
}

/// Waits until nobody listens any more: a listener's socket closes a little after its invitation ended.
func untilNobodyListens(at address: PeerAddress) async throws {
  try await eventually("nobody to listen at \(address)", every: 5) {
    guard let client = try? await RawClient.connect(to: address) else { return true }
    try await client.close()
    return false
  }
}

/// A first message of a session's handshake, framed.
func firstMessage(_ key: SharedPresharedKey, payload: [UInt8]? = nil) throws -> [UInt8] {
  let parameters = NoiseParameters(
    prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(99),
    entropy: SharedEntropy(SystemRandom()))
  let message = try parameters.start(.initiator, psk: key).write(payload ?? Offer.current.encoded())
  return [UInt8(message.count >> 8), UInt8(message.count & 255)] + message
}
