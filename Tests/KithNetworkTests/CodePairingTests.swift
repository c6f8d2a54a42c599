import KithTestSupport
import Logging
import NIOCore
import Synchronization
import Testing

@testable import KithCore
@testable import KithCrypto
@testable import KithNetwork

@Suite(.timeLimit(.minutes(5)))
struct CodePairingTests {
  let code = Self.code(1)
  /// The tries that were left after each wrong proof.
  let tries = Tries()

  final class Tries: Sendable {
    private let list = Mutex<[Int]>([])
    var left: [Int] { list.withLock { $0 } }
    func add(_ left: Int) { list.withLock { $0.append(left) } }
  }

  static func code(_ number: UInt64) -> PairingCode {
    var entropy = SeededEntropy(seed: number)
    return PairingCode(random: &entropy)
  }

  func configuration(handshake: Duration = .seconds(10)) -> PairingConfiguration {
    var configuration = PairingConfiguration()
    configuration.hosts = ["127.0.0.1"]
    configuration.handshakeTimeout = handshake
    configuration.lingerTimeout = .milliseconds(500)
    return configuration
  }

  func listener(
    _ configuration: PairingConfiguration, code: PairingCode? = nil
  ) async throws -> (PairingListener, PeerAddress) {
    let listener = PairingListener(
      keys: deviceKeys(1), token: psk(1), code: code ?? self.code, invitation: [1, 2, 3],
      configuration: configuration
    ) { tries.add($0) }
    return (listener, try #require(try await listener.bind().first))
  }

  func join(
    _ address: PeerAddress, _ code: TypedCode, _ configuration: PairingConfiguration,
    entropy: any Entropy = SystemRandom()
  ) async throws -> PairingChannel {
    try await PairingDialler(
      keys: deviceKeys(2), configuration: configuration, entropy: entropy
    ).connect(to: address, code: code) { payload, _ in payload + [4] }
  }

  @Test func pairsByTheCodeAndByTheToken() async throws {
    let configuration = configuration()
    let (listener, address) = try await listener(configuration)
    async let accepted = listener.accept()
    let joiner = try await join(address, TypedCode(code), configuration)
    let inviter = try await accepted
    #expect(inviter.remotePayload == [1, 2, 3, 4])
    #expect(joiner.remotePayload == [1, 2, 3])
    #expect(inviter.remoteStatic == deviceKeys(2).transportPublicKey)
    try joiner.send([6])
    #expect(try await inviter.receive() == [6])
    joiner.close()
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    await listener.close()
    let (other, otherAddress) = try await self.listener(configuration)
    async let second = other.accept()
    let script = try await PairingDialler(
      keys: deviceKeys(2), configuration: configuration
    ).connect(to: otherAddress, token: psk(1)) { _, _ in [9] }
    #expect(try await second.remotePayload == [9])
    script.close()
    #expect(tries.left.isEmpty)
    await other.close()
  }

  @Test func threeWrongCodesEndTheInvitation() async throws {
    let configuration = configuration()
    let (listener, address) = try await listener(configuration)
    for left in [2, 1, 0] {
      await #expect(throws: PairingError.wrongCode(address: address, triesLeft: left)) {
        try await join(address, TypedCode(Self.code(2)), configuration)
      }
    }
    #expect(tries.left == [2, 1, 0])
    await #expect(throws: PairingError.triesExhausted) { try await listener.accept() }
    try await untilNobodyListens(at: address)
    await #expect(throws: PairingError.nothingListens(at: address)) {
      try await join(address, TypedCode(code), configuration)
    }
    await listener.close()
  }

  @Test func twentyConnectionsAtOnceGetThreeGuessesInAll() async throws {
    let configuration = configuration()
    let (listener, address) = try await listener(configuration)
    let errors = await withTaskGroup(of: PairingError?.self) { tasks in
      for number in 0..<20 {
        tasks.addTask {
          do {
            _ = try await join(address, TypedCode(Self.code(100 + UInt64(number))), configuration)
            return nil
          } catch {
            return error as? PairingError
          }
        }
      }
      return await tasks.reduce(into: []) { $0.append($1) }
    }
    // The third may not hear how many are left, as the invitation ends with it.
    let told = errors.filter { error in
      guard case .wrongCode(_, let left?)? = error else { return false }
      return left > 0
    }
    #expect(told.count == 2)
    #expect(!errors.contains(nil))
    try #require(tries.left == [2, 1, 0])
    await #expect(throws: PairingError.triesExhausted) { try await listener.accept() }
    await listener.close()
  }

  /// Joins while exchanges may take too long for the listener, on a host that is busy: what fails for
  /// that is tried again. Nothing of it spends a try.
  func joinWithPatience(
    _ address: PeerAddress, _ configuration: PairingConfiguration
  ) async throws -> PairingChannel {
    let end = ContinuousClock.now + .seconds(90)
    while true {
      do {
        return try await join(address, TypedCode(code), configuration)
      } catch let error as PairingError where ContinuousClock.now < end {
        switch error {
        case .busy, .closed, .noInviter, .wrongToken, .wrongCode(_, nil): continue
        default: throw error
        }
      }
    }
  }

  /// A stalled exchange holds the others up for the time of a handshake, and spends nothing.
  @Test func whoStallsKeepsNobodyOut() async throws {
    // The time that the stalled exchange takes; who joins has more.
    let (listener, address) = try await listener(configuration(handshake: .seconds(1)))
    let configuration = configuration()
    var entropy = SeededEntropy(seed: 9)
    let hello = CodeJoiner(code: code, entropy: &entropy).hello
    let stalled = try await RawClient.connect(to: address)
    stalled.say([0, 17] + hello)
    try await eventually("an offer") { stalled.heard.count == 2 + CodeExchange.offerBytes }
    let joiner = try await joinWithPatience(address, configuration)
    #expect(stalled.isClosed || stalled.heard.count == 2 + CodeExchange.offerBytes)
    // While that exchange stands, a further joiner waits, and is told so.
    var impatient = configuration
    impatient.queueTimeout = .milliseconds(1)
    impatient.handshakeTimeout = .milliseconds(200)
    await #expect(throws: PairingError.noInviter(address: address)) {
      try await join(address, TypedCode(code), impatient)
    }
    joiner.close()
    // One that came so far is the last.
    try await untilNobodyListens(at: address)
    _ = try await listener.accept()
    #expect(tries.left.isEmpty)
    await listener.close()
  }

  @Test func whoWaitsInVainIsTold() async throws {
    var hasty = configuration()
    hasty.queueTimeout = .milliseconds(100)
    let (listener, address) = try await listener(hasty)
    let first = try await join(address, TypedCode(code), configuration())
    await #expect(throws: PairingError.busy) {
      try await join(address, TypedCode(code), configuration())
    }
    first.close()
    await listener.close()
  }

  /// Says that its invitation is over, in place of an offer.
  private final class EndedInviter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      context.writeHandshakeMessage([0])
    }
  }

  /// It was told to have another code than the inviter, which had looked at none.
  @Test func whoWaitedUntilTheInvitationWasOverIsNotToldOfAWrongCode() async throws {
    let bound = try await Bootstraps.bind(hosts: ["127.0.0.1"], port: 0) { channel in
      try channel.pipeline.syncOperations.addHandler(EndedInviter())
    }
    let address = try PeerAddress(bound: try #require(bound.first))
    let typed = TypedCode(code)
    let error = await #expect(throws: PairingError.self) {
      try await join(address, typed, configuration())
    }
    #expect(error == .invitationOver(address: address))
    #expect(
      error?.description == "the invitation of the device at \(address) is over; make a new one")
    for channel in bound { try await channel.close() }
  }

  @Test(arguments: 1...2 as ClosedRange<UInt64>)
  func malformedMessagesDrawNothing(seed: UInt64) async throws {
    var random = SeededEntropy(seed: seed)
    let hasty = try await listener(configuration(handshake: .milliseconds(400)))
    let joiner = CodeJoiner(code: code, entropy: &random)
    let hello = [0, 17] + joiner.hello
    // Not whole, of a version that there is not, more than a hello before the offer, lengths that no
    // message has, and noise that is shorter than any handshake's.
    var words: [[UInt8]] = [
      [], [0], [0, 17, 1], [0, 17, 2] + random.bytes(16), hello + hello,
      [0, 16] + random.bytes(16),
      [0, 0], [0, 18] + random.bytes(18), [0, 47] + random.bytes(2_000),
    ]
    for _ in 0..<4 { words.append([0, UInt8(random.next() % 17)] + random.bytes(40)) }
    for bytes in words {
      let client = try await RawClient.connect(to: hasty.1)
      client.say(bytes)
      try await eventually("closed after \(bytes.prefix(4)), seed \(seed)") { client.isClosed }
      #expect(client.heard.isEmpty || bytes == hello + hello, "\(bytes.prefix(4)), seed \(seed)")
    }
    #expect(tries.left.isEmpty)
    await hasty.0.close()
    let (listener, address) = try await listener(configuration())
    // A proof of a wrong length is no guess; one with an element that is none spends a try.
    for (proof, left) in [
      ([0, 63] + random.bytes(63), []), ([0, 64] + random.bytes(64), [2]),
      ([0, 64] + [UInt8](repeating: 0, count: 64), [2, 1]),
    ] {
      let client = try await RawClient.connect(to: address)
      client.say(hello)
      try await eventually("an offer") { client.heard.count >= 50 }
      client.say(proof)
      try await eventually("closed") { client.isClosed }
      #expect(tries.left == left, "seed \(seed)")
    }
    async let accepted = listener.accept()
    let good = try await join(address, TypedCode(code), configuration())
    _ = try await accepted
    good.close()
    await listener.close()
  }

  /// A party that gets a proof can check one guess by it. So a code that was typed once is proved
  /// to three inviters at most, whoever they are.
  @Test func aTypedCodeIsProvedThreeTimes() async throws {
    let configuration = configuration()
    let typed = TypedCode(code)
    for number in 1...4 as ClosedRange<UInt64> {
      let (other, address) = try await listener(configuration, code: Self.code(50 + number))
      let expected: PairingError =
        number < 4 ? .wrongCode(address: address, triesLeft: 2) : .exchangesSpent
      #expect(typed.isSpent == (number == 4))
      await #expect(throws: expected) { try await join(address, typed, configuration) }
      await other.close()
    }
    #expect(tries.left == [2, 2, 2])
  }

  @Test func invitationsAreFoundOnTheLink() async throws {
    let port = UInt16.random(in: 20_000..<32_000)
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var random = SeededEntropy(seed: 1)
    let announcement = InvitationAnnouncement(id: random.draw(), port: 4_242)
    func link() -> LinkMulticast {
      .invitations(port: port, isLoopbackOnly: true, logger: logger)
    }
    let announcer = InvitationAnnouncer(link())
    let finder = InvitationFinder(link())
    announcer.start(announcement)
    finder.start(for: .seconds(60))
    var iterator = finder.found.makeAsyncIterator()
    let found = try #require(await iterator.next())
    #expect(found.announcement == announcement)
    #expect(found.address.port == 4_242)
    await announcer.stop()
    finder.expect(within: .zero)
    while await iterator.next() != nil {}
    await finder.stop()
  }

  /// A host that announces without end cannot fill what a search looks at.
  @Test func ofOneHostFewInvitationsAreLookedAt() async throws {
    let port = UInt16.random(in: 20_000..<32_000)
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var random = SeededEntropy(seed: 1)
    let most = NetworkLimits.announcedInvitationsPerHost
    func link() -> LinkMulticast {
      .invitations(port: port, isLoopbackOnly: true, logger: logger)
    }
    let announcers = (0..<most + 3).map { _ in InvitationAnnouncer(link()) }
    let finder = InvitationFinder(link())
    for announcer in announcers {
      announcer.start(InvitationAnnouncement(id: random.draw(), port: 4_242))
    }
    finder.start(for: .seconds(60))
    var found: [String: Set<Digest128>] = [:]
    for await one in finder.found {
      found[one.address.host, default: []].insert(one.announcement.id)
      // All announce each second.
      if found[one.address.host]?.count == most { finder.expect(within: .milliseconds(1_200)) }
    }
    #expect(!found.isEmpty && found.values.allSatisfy { $0.count == most })
    for announcer in announcers { await announcer.stop() }
    await finder.stop()
  }
}
