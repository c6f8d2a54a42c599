import KithCore
import KithCrypto
import KithTestSupport
import NIOCore
import Testing

@testable import KithNetwork

@Suite(.timeLimit(.minutes(5)))
struct SessionTests {
  @Test func messagesOfAllSizesTravelBothWaysInOrder() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withTransports([one, two]) { transports, addresses in
      transports[0].addTarget(addresses[1])
      try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
      let sizes = [0, 1, 59, 60, 61, 65_451, 65_515, 65_516, 65_535, 65_536, 65_537, 8 << 20, 3]
      let messages = sizes.map { size in (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) } }
      for message in messages {
        transports[0].send(one.live[0], message)
        transports[1].send(two.live[0], message)
      }
      try await eventually("all came") {
        one.received.count == sizes.count && two.received.count == sizes.count
      }
      #expect(one.received == messages)
      #expect(two.received == messages)
      let peer = try #require(two.state.withLock { $0.opened.values.first })
      #expect(peer.transportKey == one.keys.transportPublicKey)
      #expect(!peer.isDialled)
      #expect(peer.hello.version == 1)
      #expect(peer.address.hasPrefix("127.0.0.1:"))
      let dialled = try #require(one.state.withLock { $0.opened.values.first })
      #expect(dialled.isDialled && dialled.address == addresses[1].description)
      #expect(!transports[0].isMembershipOnly(one.live[0]))
    }
  }

  @Test func oversizedMessageClosesTheSession() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withSession(one, two) { transports in
      transports[0].send(one.live[0], [UInt8](repeating: 1, count: 8 << 20 | 1))
      try await eventually("closed") { two.state.withLock { $0.closedCount } > 0 }
      #expect(two.received.isEmpty)
    }
  }

  @Test func closingFlushesWhatWasSentBefore() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withSession(one, two) { transports in
      let id = one.live[0]
      for number in 0..<50 {
        transports[0].send(id, [UInt8](repeating: UInt8(number), count: 9999))
      }
      transports[0].close(id, reason: .aged)
      transports[0].send(id, [1])
      try await eventually("closed") { two.state.withLock { $0.closedCount } > 0 }
      #expect(two.received.count == 50)
      try await eventually("redialled") { one.live.count == 1 && one.live[0] != id }
    }
  }

  @Test func shutdownTellsEverySessionsEnd() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withSession(one, two) { transports in
      transports[0].send(one.live[0], [UInt8](repeating: 1, count: 300_000))
    }
    #expect(one.state.withLock { $0.closedCount } >= 1)
    #expect(two.state.withLock { $0.closedCount } >= 1)
  }

  @Test func slowReaderMakesTheSenderWaitAndIsBounded() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    var configuration = testConfiguration()
    configuration.queueLimit = 32 << 20
    try await withSession(one, two, configuration) { transports in
      let (sender, receiver) = (one.live[0], two.live[0])
      transports[1].setReading(receiver, false)
      let message = [UInt8](repeating: 1, count: 1 << 20)
      transports[0].awaitRoom(sender)
      try await eventually("room at once") { one.state.withLock { $0.roomCount } == 1 }
      for _ in 0..<16 { transports[0].send(sender, message) }
      transports[0].awaitRoom(sender)
      try await eventually("not writable") { one.state.withLock { $0.writable.last } == false }
      #expect(one.state.withLock { $0.roomCount } == 1)
      transports[1].setReading(receiver, true)
      try await eventually("writable") { one.state.withLock { $0.writable.last } == true }
      try await eventually("room") { one.state.withLock { $0.roomCount } == 2 }
      try await eventually("all came") { two.received.count == 16 }
      transports[1].setReading(receiver, false)
      for _ in 0..<64 { transports[0].send(sender, message) }
      try await eventually("overflow") { transports[0].count(of: .overflowed) == 1 }
      try await eventually("closed") { one.state.withLock { $0.closedCount } > 0 }
      transports[1].setReading(receiver, true)
      try await eventually("closed there too") { two.state.withLock { $0.closedCount } > 0 }
    }
  }

  /// Thousands of small messages that were read at once came after the pause that the first asked for.
  @Test func aPausedSessionHandsOnNothingThatWasReadBefore() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withSession(one, two) { transports in
      two.state.withLock { $0.pauses = true }
      let messages = (0..<2_000).map { [UInt8($0 % 256), UInt8($0 / 256)] }
      for message in messages { transports[0].send(one.live[0], message) }
      for count in 1...20 {
        try await eventually("message \(count)") { two.received.count >= count }
        #expect(two.received.count == count)
        if count == 20 { two.state.withLock { $0.pauses = false } }
        transports[1].setReading(two.live[0], true)
      }
      try await eventually("the rest") { two.received.count == messages.count }
      #expect(two.received == messages)
    }
  }

  @Test func silentAndAgedSessionsClose() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    var configuration = testConfiguration()
    configuration.silenceTimeout = .milliseconds(100)
    try await withTransports([one, two], configuration) { transports, addresses in
      transports[0].addTarget(addresses[1])
      try await eventually("silent") {
        transports[0].count(of: .fellSilent) + transports[1].count(of: .fellSilent) > 0
      }
    }
    let (three, four) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    configuration.silenceTimeout = .seconds(90)
    configuration.sessionLifetime = .milliseconds(100)
    try await withTransports([three, four], configuration) { transports, addresses in
      transports[0].addTarget(addresses[1])
      try await eventually("made anew twice") { three.state.withLock { $0.closedCount } > 1 }
    }
  }

  @Test(arguments: ["127.0.0.1", "::1", "::", "localhost"])
  func listensOnAndDialsEachFamily(host: String) async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withTransports([one, two], testConfiguration(hosts: [host])) {
      transports, addresses in
      let port = addresses[1].port
      let target = host == "::" ? "127.0.0.1:\(port)" : host == "::1" ? "[::1]:\(port)" : nil
      transports[0].addTarget(try PeerAddress(target ?? "localhost:\(port)"))
      try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
    }
  }

  @Test func dialsItselfOnceOnly() async throws {
    let (one, other) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(2)]))
    // A handshake that a busy host lets run out would not show that the peer is oneself.
    try await withTransports([one, other], testConfiguration(handshake: .seconds(2))) {
      transports, addresses in
      transports[0].addTarget(addresses[0])
      try await eventually("dialled") { transports[0].count(of: .accepted) == 1 }
      try await eventually("gone") { transports[0].gate.halfOpen == 0 }
      // Another target, which refuses it, is dialled again and again meanwhile.
      transports[0].addTarget(addresses[1])
      try await eventually("redialled") { transports[1].count(of: .accepted) >= 3 }
      #expect(transports[0].count(of: .accepted) == 1)
      #expect(one.state.withLock { $0.opened.isEmpty })
    }
  }

  @Test func learnedAddressesAreDialledInTurn() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)]))
    try await withTransports([one, two]) { transports, addresses in
      let dead = try PeerAddress("127.0.0.1:1")
      transports[0].setLearnedAddresses(
        [(two.keys.id, [dead, addresses[1]], two.keys.transportPublicKey)])
      try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
    }
  }
}
