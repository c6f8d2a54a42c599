import KithCore
import KithCrypto
import KithTestSupport
import NIOCore
import Testing

@testable import KithNetwork

@Suite(.serialized, .timeLimit(.minutes(5)))
struct HostileConnectionTests {
  /// The first bytes that a stranger sends.
  struct Greeting: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]

    init(_ description: String, _ bytes: [UInt8]) {
      (testDescription, self.bytes) = (description, bytes)
    }
  }

  static let greetings = [
    Greeting("nothing", []),
    Greeting("a zero", [0]),
    Greeting("one long frame", [UInt8](repeating: 0x55, count: 300)),
    Greeting("ones", [UInt8](repeating: 0xFF, count: 5000)),
    Greeting("HTTP", Array("GET / HTTP/1.1\r\nHost: kith\r\n\r\n".utf8)),
    Greeting(
      "TLS",
      [0x16, 0x03, 0x01, 0x00, 0xF8, 0x01, 0x00, 0x00, 0xF4, 0x03, 0x03]
        + [UInt8](repeating: 9, count: 240)),
    Greeting("SSH", Array("SSH-2.0-OpenSSH_9.6\r\n".utf8)),
    Greeting("a frame of the right length", [0x00, 0x36] + [UInt8](repeating: 3, count: 54)),
  ]

  @Test(arguments: greetings)
  func strangerHearsNothingAndIsClosedInTime(greeting: Greeting) async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one], testConfiguration(handshake: .seconds(1))) {
      transports, addresses in
      let began = ContinuousClock.now
      let client = try await RawClient.connect(to: addresses[0])
      client.say(greeting.bytes)
      try await eventually("closed") { client.isClosed }
      #expect(ContinuousClock.now - began >= .milliseconds(990))
      #expect(client.heard.isEmpty)
      try await eventually("forgotten") { transports[0].gate.halfOpen == 0 }
      #expect(transports[0].count(of: .handshakeFailed) == 1)
      // Silence is no attempt.
      let isSilent = greeting.bytes.count < 2
      #expect(one.state.withLock { $0.unauthenticated } == (isSilent ? [] : ["127.0.0.1"]))
    }
  }

  @Test func firstMessageUnderAnotherKeyHearsNothing() async throws {
    let one = TestNode(1, psks: [psk(1), psk(2)])
    try await withTransports([one], testConfiguration(handshake: .milliseconds(200))) {
      _, addresses in
      let began = ContinuousClock.now
      let client = try await RawClient.connect(to: addresses[0])
      client.say(try firstMessage(psk(3)))
      try await eventually("closed") { client.isClosed }
      #expect(ContinuousClock.now - began >= .milliseconds(190))
      #expect(client.heard.isEmpty)
      #expect(one.state.withLock { $0.unauthenticated } == ["127.0.0.1"])
    }
  }

  /// The deadline may pass before the connection is active at all: no place is lost by that.
  @Test func noPlaceIsLostWhereTheDeadlineComesFirst() async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one], testConfiguration(handshake: .zero)) {
      transports, addresses in
      for _ in 0..<100 {
        let client = try await RawClient.connect(to: addresses[0])
        try await eventually("closed") { client.isClosed }
      }
      try await eventually("all accepted") { transports[0].count(of: .accepted) == 100 }
      try await eventually("no place lost", seconds: 20) {
        transports[0].gate.halfOpen == 0
      }
    }
  }

  @Test func otherVersionsHearNothing() async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one], testConfiguration(handshake: .milliseconds(200))) {
      _, addresses in
      let client = try await RawClient.connect(to: addresses[0])
      client.say(try firstMessage(psk(1), payload: Offer(versions: [2, 3]).encoded()))
      try await eventually("closed") { client.isClosed }
      #expect(client.heard.isEmpty)
    }
  }

  @Test func replayedFirstMessageHearsNothing() async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one], testConfiguration(handshake: .milliseconds(300))) {
      transports, addresses in
      let message = try firstMessage(psk(1))
      let first = try await RawClient.connect(to: addresses[0])
      first.say(message)
      try await eventually("answered") { !first.heard.isEmpty }
      let second = try await RawClient.connect(to: addresses[0])
      second.say(message)
      try await eventually("closed") { second.isClosed }
      #expect(second.heard.isEmpty)
      #expect(transports[0].count(of: .replayed) == 1)
    }
  }

  @Test func slowLorisIsCutOff() async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one], testConfiguration(handshake: .milliseconds(300))) {
      _, addresses in
      let client = try await RawClient.connect(to: addresses[0])
      for byte in try firstMessage(psk(1)).dropLast() where !client.isClosed {
        client.say([byte])
        try await Task.sleep(for: .milliseconds(10))
      }
      try await eventually("closed") { client.isClosed }
      #expect(client.heard.isEmpty)
    }
  }

  @Test func memberGetsInAmongAThousandHostileConnections() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    two.state.withLock { $0.echoes = true }
    try await withTransports([one, two]) { transports, addresses in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<1000 {
          if number >= 100 { _ = try await group.next() }
          group.addTask {
            let client = try? await RawClient.connect(to: addresses[1])
            client?.say(number % 2 == 0 ? [1, 2, 3] : [UInt8](repeating: 9, count: 2000))
          }
          if number == 300 { transports[0].addTarget(addresses[1]) }
        }
        try await group.waitForAll()
      }
      try await eventually("met") { !one.live.isEmpty }
      transports[0].send(one.live[0], Array("hello".utf8))
      try await eventually("echoed") { one.received == [Array("hello".utf8)] }
      try await eventually("all accepted") { transports[1].count(of: .accepted) > 1000 }
      #expect(transports[1].gate.halfOpen <= 16)
      #expect(transports[1].count(of: .evicted) >= 900)
    }
  }

  @Test func tamperedFrameClosesAndIsCounted() async throws {
    let one = TestNode(1, psks: [psk(1)])
    try await withTransports([one]) { transports, addresses in
      let client = try await RawClient.connect(to: addresses[0])
      let exchange = try NoiseParameters(
        prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(2),
        entropy: SharedEntropy(SystemRandom())
      ).start(.initiator, psk: psk(1))
      func frame(_ message: [UInt8]) -> [UInt8] {
        [UInt8(message.count >> 8), UInt8(message.count & 255)] + message
      }
      client.say(frame(try exchange.write(Offer.current.encoded())))
      try await eventually("answered") {
        client.heard.count > 2
          && client.heard.count == 2 + Int(client.heard[0]) << 8 + Int(client.heard[1])
      }
      _ = try exchange.read(Array(client.heard.dropFirst(2)))
      var hello = one.hello()
      hello.version = 1
      let third = frame(try exchange.write(hello.encoded()))
      let codec = MessageCodec(ciphers: try exchange.split(), messageLimit: 1000)
      var buffer = ByteBuffer()
      try codec.seal([1, 2, 3], into: &buffer)
      let good = Array(buffer: buffer)
      buffer.clear()
      try codec.seal([4, 5, 6], into: &buffer)
      var bad = Array(buffer: buffer)
      bad[20] ^= 1
      client.say(third + good + bad)
      try await eventually("closed") { client.isClosed }
      #expect(one.received == [[1, 2, 3]])
      #expect(transports[0].count(of: .notAuthentic) == 1)
    }
  }

  @Test func sessionsAreBounded() async throws {
    let nodes = (1...3).map { TestNode($0, psks: [psk(1)]) }
    var configuration = testConfiguration(handshake: .milliseconds(200))
    configuration.sessionLimit = 1
    try await withTransports(nodes, configuration) { transports, addresses in
      transports[1].addTarget(addresses[0])
      try await eventually("met") { nodes[0].live.count == 1 }
      transports[2].addTarget(addresses[0])
      try await eventually("refused") { transports[0].count(of: .refused) > 0 }
      #expect(nodes[0].live.count == 1)
    }
  }

  /// The handshake was right: the next attempt must use the same key.
  @Test func aFullDiallerDoesNotCountAFailedHandshake() async throws {
    let nodes = (1...3).map { TestNode($0, psks: [psk(1)]) }
    var configuration = testConfiguration()
    configuration.sessionLimit = 1
    try await withTransports(nodes, configuration) { transports, addresses in
      transports[1].addTarget(addresses[0])
      try await eventually("met") { nodes[0].live.count == 1 }
      transports[0].addTarget(addresses[2])
      try await eventually("refused twice") { transports[0].count(of: .refused) > 1 }
      #expect(transports[0].count(of: .handshakeFailed) == 0)
    }
  }
}
