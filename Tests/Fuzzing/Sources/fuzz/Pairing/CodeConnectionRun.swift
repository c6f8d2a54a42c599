@testable import KithCrypto
import NIOCore
import NIOEmbedded

@testable import KithCore
@testable import KithNetwork

/// One connection to an inviter or to a joiner, whose other end says what the input says: real
/// messages, altered ones, any frames, any bytes, and time that passes between them.
///
/// A minute later the connection is closed and nothing of it is left. To a dialler without the code
/// an inviter sent at most its offer and a refusal, and counted one try at most. A joiner proved
/// its code once at most, and sent nothing after the proof to an inviter that could not confirm it.
enum CodeConnectionRun {
  /// The inviter's side.
  static func inviter(_ input: inout FuzzInput) {
    let isOneCode = input.bool()
    var entropy = SeededEntropy(seed: 2)
    var joiner = CodeJoiner(code: CodeExchangeRun.codes[isOneCode ? 0 : 1], entropy: &entropy)
    var configuration = PairingConfiguration()
    configuration.lifetime = .seconds(600)
    let channel = EmbeddedChannel()
    let listener = PairingListener(
      keys: FuzzAccount.shared.devices[0],
      token: SharedPresharedKey(PresharedKey(random: &entropy)), code: CodeExchangeRun.codes[0],
      invitation: [1, 2, 3], configuration: configuration,
      entropy: SeededEntropy(seed: 3))
    let (id, _) = listener.gate.admit(channel)
    let handler = CodeInviterHandler(
      listener: listener, id: id, code: CodeExchangeRun.codes[0], bucket: AddressBucket(nil),
      withoutCode: ListenerHandshakeHandler(
        parameters: listener.parameters, owner: InvitingConnection(listener: listener, id: id),
        timeout: .seconds(5)))
    var peer = Peer(channel, handler)
    var hasProved = false
    peer.play(&input) { sent in
      if sent.isEmpty { return joiner.hello }
      guard sent.count >= CodeExchange.offerBytes + 2, !hasProved else { return nil }
      hasProved = true
      return try? joiner.prove(
        to: Array(sent[2..<(CodeExchange.offerBytes + 2)]), entropy: &entropy)
    }
    if !isOneCode || peer.soundMessages < 2 {
      require(
        peer.sent.count <= CodeExchange.offerBytes + 2 + 3,
        "an inviter said \(peer.sent.count) bytes to who has not its code")
    }
    require(listener.gate.halfOpen == 0, "a connection that is closed counts as half-open")
    require(
      listener.spendTry() >= NetworkLimits.pairingTries - 2, "a connection cost several tries")
    require(listener.begin(), "an exchange that is over keeps others waiting")
  }

  /// The joiner's side.
  static func joiner(_ input: inout FuzzInput) {
    let isOneCode = input.bool()
    var entropy = SeededEntropy(seed: 4)
    var inviter = CodeInviter(code: CodeExchangeRun.codes[isOneCode ? 0 : 1])
    let code = TypedCode(CodeExchangeRun.codes[0])
    let parameters = NoiseParameters(
      prologue: [], keys: FuzzAccount.shared.stranger,
      entropy: SharedEntropy(SeededEntropy(seed: 5)))
    let channel = EmbeddedChannel()
    let handler = CodeJoinerHandler(
      code: code, address: .unused, parameters: parameters, configuration: PairingConfiguration(),
      owner: NoJoiner(),
      outcome: AsyncThrowingStream<PairingChannel, any Error>.makeStream().continuation)
    var peer = Peer(channel, handler)
    let (hello, proof) = (CodeExchange.helloBytes + 2, CodeExchange.proofBytes + 2)
    peer.play(&input) { sent in
      if sent.count == hello {
        return try? inviter.offer(to: Array(sent[2..<hello]), entropy: &entropy)
      }
      guard sent.count == hello + proof else { return nil }
      return confirmation(&inviter, Array(sent[(hello + 2)...]))
    }
    if !isOneCode || peer.soundMessages < 2 {
      require(
        peer.sent.count <= hello + proof,
        "a joiner said \(peer.sent.count) bytes to who has not its code")
    }
    require(code.spendExchange() && code.spendExchange(), "a connection cost several exchanges")
  }

  private static func confirmation(_ inviter: inout CodeInviter, _ proof: [UInt8]) -> [UInt8]? {
    guard let agreement = try? inviter.confirm(proof) else { return nil }
    return agreement.confirmation
  }

  /// Exchanges with the right code and a wrong one, to the end, and cut short by a message that
  /// does not belong there.
  static var seeds: [(name: String, bytes: [UInt8])] {
    var seeds: [(String, [UInt8])] = []
    for (name, side) in [("inviter", 1), ("joiner", 2)] {
      seeds.append(("\(name) to the end", [UInt8(side), 1, 0, 0, 0]))
      seeds.append(("\(name) with a wrong code", [UInt8(side), 0, 0, 0, 0]))
      seeds.append(("\(name) late", [UInt8(side), 1, 0, 4, 60, 0]))
      seeds.append(("\(name) altered", [UInt8(side), 1, 0, 3, 0, 7, 1]))
      seeds.append(("\(name) refused", [UInt8(side), 1, 1, 0, 1, 2]))
      seeds.append(("\(name) raw", [UInt8(side), 1, 2, 0, 3, 0, 17, 1]))
      seeds.append(
        ("\(name) a handshake", [UInt8(side), 1, 1, 0, 48] + [UInt8](repeating: 9, count: 48)))
    }
    return seeds
  }
}

/// The other end of a connection in memory.
private struct Peer {
  let channel: EmbeddedChannel
  /// All that the side under test has sent.
  var sent: [UInt8] = []
  /// How many real messages came to it, before anything else did.
  var soundMessages = 0
  private var isSound = true

  init(_ channel: EmbeddedChannel, _ handler: any ChannelHandler) {
    self.channel = channel
    do {
      // Connected first: handlers are added to connections that stand.
      try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 4115)).wait()
      try channel.pipeline.syncOperations.addHandler(handler)
    } catch {
      fatalError("no connection: \(error)")
    }
  }

  /// Does what the input says, and lets a minute pass.
  mutating func play(_ input: inout FuzzInput, real: (_ sent: [UInt8]) -> [UInt8]?) {
    settle()
    for _ in 0..<16 where !input.isAtEnd && channel.isActive {
      switch input.number(below: 5) {
      case 0:
        guard let message = real(sent) else { continue }
        if isSound { soundMessages += 1 }
        hand(Self.frame(message))
      case 1:
        isSound = false
        hand(Self.frame(input.block()))
      case 2:
        let bytes = input.block()
        if !bytes.isEmpty { isSound = false }
        hand(bytes)
      case 3:
        guard var message = real(sent) else { continue }
        let (place, bits) = (input.uint16(), input.byte())
        if place < message.count, bits != 0 {
          message[place] ^= bits
          isSound = false
        }
        if isSound { soundMessages += 1 }
        hand(Self.frame(message))
      default:
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(Int64(input.byte()) * 100))
      }
      settle()
    }
    for _ in 0..<60 { channel.embeddedEventLoop.advanceTime(by: .seconds(1)) }
    settle()
    require(!channel.isActive, "a connection that came to nothing stays")
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }

  private static func frame(_ message: [UInt8]) -> [UInt8] {
    [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
  }

  private func hand(_ bytes: [UInt8]) {
    _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
  }

  private mutating func settle() {
    channel.embeddedEventLoop.run()
    while let buffer = try? channel.readOutbound(as: ByteBuffer.self) {
      sent += buffer.readableBytesView
    }
  }
}

/// A joiner that stops after the handshake.
private final class NoJoiner: DiallerHandshakeOwner {
  struct Enough: Error {}

  func offer() -> [UInt8] { [] }

  func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8] { throw Enough() }

  func finished(_ exchange: NoiseExchange) -> SessionHandler? { nil }

  func failed(_ error: (any Error)?) {}
}

extension PeerAddress {
  /// Named in errors only.
  fileprivate static var unused: PeerAddress {
    do {
      return try PeerAddress(host: "192.0.2.1", port: 4115)
    } catch {
      fatalError("\(error)")
    }
  }
}
