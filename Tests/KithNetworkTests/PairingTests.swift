import KithCore
import KithCrypto
import KithTestSupport
import Synchronization
import Testing

@testable import KithNetwork

@Suite(.timeLimit(.minutes(5)))
struct PairingTests {
  func configuration(
    handshake: Duration = .seconds(5), lifetime: Duration = .seconds(600)
  ) -> PairingConfiguration {
    var configuration = PairingConfiguration()
    configuration.hosts = ["127.0.0.1"]
    configuration.handshakeTimeout = handshake
    configuration.lifetime = lifetime
    configuration.lingerTimeout = .milliseconds(500)
    return configuration
  }

  func listener(_ configuration: PairingConfiguration) -> PairingListener {
    PairingListener(
      keys: deviceKeys(1), token: psk(1), invitation: [1, 2, 3], configuration: configuration)
  }

  func join(
    _ address: PeerAddress, token: UInt64, configuration: PairingConfiguration,
    answer: @escaping @Sendable ([UInt8], TransportPublicKey) throws -> [UInt8] = { _, _ in [9] }
  ) async throws -> PairingChannel {
    try await PairingDialler(
      keys: deviceKeys(2), configuration: configuration
    ).connect(to: address, token: psk(token), answer: answer)
  }

  @Test func pairs() async throws {
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    async let accepted = listener.accept()
    let joiner = try await join(address, token: 1, configuration: configuration) { payload, key in
      #expect(payload == [1, 2, 3])
      #expect(key == deviceKeys(1).transportPublicKey)
      return payload + [4]
    }
    let inviter = try await accepted
    #expect(inviter.remotePayload == [1, 2, 3, 4])
    #expect(joiner.remotePayload == [1, 2, 3])
    #expect(inviter.remoteStatic == deviceKeys(2).transportPublicKey)
    #expect(inviter.remoteAddress.hasPrefix("127.0.0.1:"))
    let large = [UInt8](repeating: 3, count: 64 << 10)
    try inviter.send(large)
    try joiner.send([5])
    #expect(try await joiner.receive() == large)
    #expect(try await inviter.receive() == [5])
    #expect(throws: PairingError.self) { try inviter.send(large + [1]) }
    try joiner.send([6])
    joiner.close()
    #expect(try await inviter.receive() == [6])
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    await listener.close()
    await #expect(throws: PairingError.closed) { try await listener.accept() }
  }

  private func paired() async throws -> (
    listener: PairingListener, joiner: PairingChannel, inviter: PairingChannel
  ) {
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    async let accepted = listener.accept()
    let joiner = try await join(address, token: 1, configuration: configuration)
    let inviter = try await accepted
    return (listener, joiner, inviter)
  }

  /// Messages that the other side sends before a person has answered are kept in a bounded queue.
  @Test func messagesThatNobodyTakesEndAPairing() async throws {
    let (listener, joiner, inviter) = try await paired()
    for number in 0...NetworkLimits.pairingQueuedMessages { try joiner.send([UInt8(number)]) }
    await #expect(throws: PairingError.closed) { try await joiner.receive() }
    for number in 0..<NetworkLimits.pairingQueuedMessages {
      #expect(try await inviter.receive() == [UInt8(number)])
    }
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    await listener.close()
  }

  @Test func `an end is told before the messages that wait are taken`() async throws {
    let (listener, joiner, inviter) = try await paired()
    let (ended, end) = AsyncStream<Void>.makeStream()
    inviter.onEnd { end.finish() }
    try joiner.send([5])
    joiner.close()
    for await () in ended {}
    // Nor is one missed that came before.
    let (endedBefore, endBefore) = AsyncStream<Void>.makeStream()
    inviter.onEnd { endBefore.finish() }
    for await () in endedBefore {}
    #expect(try await inviter.receive() == [5])
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    await listener.close()
  }

  /// An inviter may have much to publish before its session begins.
  @Test func messagesOfASessionWaitForItsOwner() async throws {
    let (listener, joiner, inviter) = try await paired()
    inviter.allowSession()
    let messages = (0..<3 * NetworkLimits.pairingQueuedMessages).map { [UInt8($0)] }
    for message in messages { joiner.sendSession(message) }
    try await eventually("full") {
      inviter.waitingMessages == NetworkLimits.pairingQueuedMessages
    }
    #expect(try await inviter.receive() == messages[0])
    let session = Session(of: inviter)
    inviter.carrySession(for: session)
    joiner.close()
    var end: [[UInt8]]?
    for await messages in session.end { end = messages }
    #expect(end == Array(messages.dropFirst()))
    await listener.close()
  }

  @Test func whoSaysNothingWholeSpendsNoTry() async throws {
    let configuration = configuration(handshake: .seconds(1))
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    var clients: [RawClient] = []
    for _ in 0..<5 {
      let client = try await RawClient.connect(to: address)
      client.say([0, 54, 1, 2])
      clients.append(client)
    }
    for client in clients {
      try await eventually("closed") { client.isClosed }
      #expect(client.heard.isEmpty)
    }
    // A right token that comes too late on a busy host spends one of the three tries.
    try await eventually("let in") {
      (try? await join(address, token: 1, configuration: configuration)) != nil
    }
    await listener.close()
  }

  /// With a handshake's usual time: an inviter that closes before it reads spends no try.
  @Test func threeWrongTokensEndIt() async throws {
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    for _ in 0..<3 {
      await #expect(throws: PairingError.wrongToken(address: address)) {
        try await join(address, token: 2, configuration: configuration)
      }
    }
    await #expect(throws: PairingError.triesExhausted) { try await listener.accept() }
    try await untilNobodyListens(at: address)
    await #expect(throws: PairingError.nothingListens(at: address)) {
      try await join(address, token: 1, configuration: configuration)
    }
    await listener.close()
  }

  @Test func expires() async throws {
    let listener = listener(configuration(lifetime: .milliseconds(100)))
    _ = try await listener.bind()
    await #expect(throws: PairingError.expired) { try await listener.accept() }
    await listener.close()
  }

  @Test func expiryEndsTheExchange() async throws {
    // Long enough for a handshake on a host that is busy with other tests.
    let configuration = configuration(lifetime: .seconds(4))
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    let joiner = try await join(address, token: 1, configuration: configuration)
    let inviter = try await listener.accept()
    await #expect(throws: PairingError.expired) { try await inviter.receive() }
    await #expect(throws: PairingError.closed) { try await joiner.receive() }
    await listener.close()
  }

  /// A second joiner was let in while the inviter still asked about the first, which had gone.
  @Test func `one exchange at a time, and none after one that came so far`() async throws {
    // Long enough for a handshake under a sanitizer; those that are turned away take all of it.
    let configuration = configuration(handshake: .seconds(1))
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    let first = try await join(address, token: 1, configuration: configuration)
    let inviter = try await listener.accept()
    for _ in 0..<4 {
      await #expect(throws: PairingError.wrongToken(address: address)) {
        try await join(address, token: 1, configuration: configuration)
      }
    }
    first.close()
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    try await untilNobodyListens(at: address)
    await #expect(throws: PairingError.closed) { try await listener.accept() }
    await listener.close()
  }

  @Test func joinerCanAbort() async throws {
    struct OtherAccount: Error {}
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    await #expect(throws: OtherAccount.self) {
      try await join(address, token: 1, configuration: configuration) { _, _ in
        throw OtherAccount()
      }
    }
    await listener.close()
  }

  /// It was forgotten if it came and went before anybody waited for it: the invitation lived on, and
  /// took a second joiner.
  @Test func joinerThatLeavesAtOnceCounts() async throws {
    let configuration = configuration(handshake: .seconds(1))
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    let joiner = try await join(address, token: 1, configuration: configuration)
    joiner.close()
    _ = await joiner.awaitEnd()
    await #expect(throws: PairingError.self) {
      try await self.join(address, token: 1, configuration: configuration)
    }
    let inviter = try await listener.accept()
    #expect(inviter.remotePayload == [9])
    await #expect(throws: PairingError.closed) { try await inviter.receive() }
    await listener.close()
  }

  @Test func acceptingCanBeCancelled() async throws {
    let listener = listener(configuration())
    _ = try await listener.bind()
    let task = Task { try await listener.accept() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    await listener.close()
  }

  /// Channel and connection hold each other, and so do channel and session. Each join kept its engine.
  @Test func endedPairingsAreFreed() async throws {
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    func pair() async throws -> [() -> AnyObject?] {
      async let accepted = listener.accept()
      let joiner = try await join(address, token: 1, configuration: configuration)
      let inviter = try await accepted
      let (one, other) = (Session(of: inviter), Session(of: joiner))
      inviter.carrySession(for: one)
      joiner.carrySession(for: other)
      joiner.sendSession([7])
      joiner.close()
      for await _ in one.end {}
      for await _ in other.end {}
      return [weakly(inviter), weakly(joiner), weakly(one), weakly(other)]
    }
    let objects = try await pair()
    try await eventually("freed") { objects.allSatisfy { $0() == nil } }
    await listener.close()
  }

  /// A session that is carried only after the other side has closed still gets what came before.
  @Test func sessionOfAnEndedPairingGetsItsMessages() async throws {
    let configuration = configuration()
    let listener = listener(configuration)
    let address = try #require(try await listener.bind().first)
    let joiner = try await join(address, token: 1, configuration: configuration)
    let inviter = try await listener.accept()
    joiner.sendSession([7])
    joiner.close()
    _ = await joiner.awaitEnd()
    try await eventually("closed") { (try? inviter.send([1])) == nil }
    let session = Session(of: inviter)
    inviter.carrySession(for: session)
    var end: [[UInt8]]?
    for await messages in session.end { end = messages }
    #expect(end == [[7]])
    await listener.close()
  }
}

private func weakly(_ object: some AnyObject & Sendable) -> () -> AnyObject? {
  { [weak object] in object }
}

/// Holds its channel, as the sessions of devices do.
private final class Session: PairingSessionOwner {
  let channel: PairingChannel
  /// Yields the received messages at the end, and finishes.
  let end: AsyncStream<[[UInt8]]>
  private let continuation: AsyncStream<[[UInt8]]>.Continuation
  private let messages = Mutex<[[UInt8]]>([])

  init(of channel: PairingChannel) {
    self.channel = channel
    (end, continuation) = AsyncStream.makeStream()
  }

  func received(_ message: [UInt8]) { messages.withLock { $0.append(message) } }
  func writable(_ isWritable: Bool) {}
  func drained() {}

  func closed() {
    continuation.yield(messages.withLock { $0 })
    continuation.finish()
  }
}
