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
      transports[0].awaitDrain(sender)
      try await eventually("room at once") { one.state.withLock { $0.roomCount } == 1 }
      for _ in 0..<16 { transports[0].send(sender, message) }
      transports[0].awaitDrain(sender)
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
      transports[0].setRememberedAddresses(
        [(two.keys.id, [dead, addresses[1]], two.keys.transportPublicKey)])
      try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
    }
  }
}

@Suite(.timeLimit(.minutes(5)))
struct MembershipSessionTests {
  @Test func unknownKeyGetsALimitedSessionThatEnds() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)], members: [2]))
    var configuration = testConfiguration()
    configuration.membershipTimeout = .seconds(1)
    try await withSession(one, two, configuration) { transports in
      #expect(transports[1].isMembershipOnly(two.live[0]))
      // On a busy host a session may be over before anything is sent on it; the next has a try, too.
      var sent: Set<SessionID> = []
      try await eventually("16 KiB came") {
        if let session = one.live.first, sent.insert(session).inserted {
          transports[0].send(session, [UInt8](repeating: 7, count: 16 << 10))
        }
        return !two.received.isEmpty
      }
      #expect(two.received.count <= sent.count)
      try await eventually("over in time") { two.state.withLock { $0.closedCount } > 0 }
      try await eventually("redialled") { two.state.withLock { $0.opened.count } > 1 }
    }
  }

  /// A member whose proof is on its way may send more behind it: that ended the session.
  @Test(arguments: [16 << 10 | 1, 20_000, 300_000])
  func largerMessageWaitsForThePromotion(bytes: Int) async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)], members: [2]))
    var configuration = testConfiguration()
    configuration.membershipTimeout = .seconds(60)
    try await withSession(one, two, configuration) { transports in
      transports[0].send(one.live[0], [1])
      transports[0].send(one.live[0], [UInt8](repeating: 7, count: bytes))
      transports[0].send(one.live[0], [2])
      try await eventually("the proof came") { two.received.count == 1 }
      transports[1].promote(two.live[0])
      try await eventually("the rest came") { two.received.count == 3 }
      #expect(two.received.map(\.count) == [1, bytes, 1])
      #expect(two.state.withLock { $0.closedCount } == 0)
    }
  }

  @Test func largerMessageIsReceivedOnNoLimitedSession() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)], members: [2]))
    var configuration = testConfiguration()
    configuration.membershipTimeout = .seconds(1)
    try await withSession(one, two, configuration) { transports in
      transports[0].send(one.live[0], [UInt8](repeating: 7, count: 16 << 10 | 1))
      try await eventually("closed") { two.state.withLock { $0.closedCount } > 0 }
      #expect(two.received.isEmpty)
    }
  }

  /// Each message is within its limit; all together are not.
  @Test func whatALimitedSessionBringsInAllIsBounded() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)], members: [2]))
    var configuration = testConfiguration()
    configuration.leastRedialMilliseconds = 60_000
    configuration.mostRedialMilliseconds = 60_000
    // Only the bound is to end it, also on a busy host.
    configuration.membershipTimeout = .seconds(60)
    try await withSession(one, two, configuration) { transports in
      let session = one.live[0]
      let message = [UInt8](repeating: 7, count: NetworkLimits.membershipMessageBytes)
      let room = NetworkLimits.membershipSessionBytes / message.count
      for _ in 0..<(2 * room) { transports[0].send(session, message) }
      try await eventually("closed") { two.state.withLock { $0.closedCount } == 1 }
      // Messages that are read together with the one that exceeds the bound may be received, too.
      #expect((room / 2...room + 8).contains(two.received.count))
      #expect(transports[1].count(of: .protocolViolated) == 1)
    }
  }

  @Test func promotionLiftsTheLimits() async throws {
    let (one, two) = (TestNode(1, psks: [psk(1)]), TestNode(2, psks: [psk(1)], members: [2]))
    let later = TestNode(3, psks: [psk(1)])
    var configuration = testConfiguration()
    configuration.membershipTimeout = .seconds(3)
    configuration.leastRedialMilliseconds = 60_000
    configuration.mostRedialMilliseconds = 60_000
    try await withTransports([one, two, later], configuration) { transports, addresses in
      transports[0].addTarget(addresses[1])
      try await eventually("both met") { one.live.count == 1 && two.live.count == 1 }
      transports[1].promote(two.live[0])
      #expect(!transports[1].isMembershipOnly(two.live[0]))
      // Another session, which began later and stays limited, ends first.
      transports[2].addTarget(addresses[1])
      try await eventually("the limited one ended") { two.state.withLock { $0.closedCount } == 1 }
      transports[0].send(one.live[0], [UInt8](repeating: 7, count: 1 << 20))
      try await eventually("came") { two.received.count == 1 }
      #expect(two.state.withLock { $0.closedCount } == 1)
    }
  }

  @Test func listenerTriesOlderEpochs() async throws {
    let one = TestNode(1, psks: [psk(1)])
    let two = TestNode(2, psks: [psk(3), psk(2), psk(1)])
    try await withSession(one, two) { transports in
      #expect(transports[1].isMembershipOnly(two.live[0]))
      // The delegate is told that the key is known and the epoch is older.
      #expect(two.state.withLock { $0.opened.values.allSatisfy(\.isMembershipOnly) })
      #expect(one.state.withLock { !$0.opened.values.contains(where: \.isMembershipOnly) })
    }
  }

  @Test func diallerTriesOlderEpochs() async throws {
    let one = TestNode(1, psks: [psk(3), psk(2), psk(1)])
    let two = TestNode(2, psks: [psk(1)])
    let configuration = testConfiguration(handshake: .milliseconds(150))
    try await withSession(one, two, configuration) { transports in
      #expect(transports[0].isMembershipOnly(one.live[0]))
      #expect(!transports[1].isMembershipOnly(two.live[0]))
      #expect(transports[0].count(of: .handshakeFailed) >= 2)
    }
  }
}
