import KithCore
import KithTestSupport
import NIOCore
import Testing

@testable import KithNetwork

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
