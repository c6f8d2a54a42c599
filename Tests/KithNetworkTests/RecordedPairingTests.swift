import KithProxy
import KithTestSupport
import Testing

@testable import KithCore
@testable import KithCrypto
@testable import KithNetwork

/// A party that recorded a pairing, and learns the code afterwards, can open nothing of it.
@Suite(.timeLimit(.minutes(5)))
struct RecordedPairingTests {
  /// The bytes that travelled, in messages.
  struct Recording {
    let hello, proof, first, offer, confirmation: [UInt8]

    init(_ proxy: FaultyProxy) throws {
      var forward = Self.messages(proxy.recorded(.forward), 3)
      var backward = Self.messages(proxy.recorded(.backward), 2)
      guard forward.count == 3, backward.count == 2 else { throw NotInTime("no recording") }
      (hello, proof, first) = (forward.removeFirst(), forward.removeFirst(), forward.removeFirst())
      (offer, confirmation) = (backward.removeFirst(), backward.removeFirst())
    }

    private static func messages(_ bytes: [UInt8], _ count: Int) -> [[UInt8]] {
      var rest = bytes[...]
      var messages: [[UInt8]] = []
      while rest.count > 2, messages.count < count {
        let length = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
        messages.append(Array(rest.prefix(length)))
        rest = rest.dropFirst(length)
      }
      return messages
    }

    var transcript: CodeExchange.Transcript {
      get throws {
        CodeExchange.Transcript(
          session: Array(offer.prefix(16)) + hello.dropFirst(),
          inviterShare: try CPaceShare(offer.suffix(32)),
          joinerShare: try CPaceShare(proof.prefix(32)))
      }
    }

    /// Whether a key that somebody came to is the one that the two agreed on: whether their proofs
    /// are made with it, and whether it opens the first message of the handshake, which hides its
    /// payload under nothing but the pre-shared key.
    func isOpened(by key: borrowing CPaceKey) throws -> Bool {
      let transcript = try transcript
      let agreement = transcript.agreement(under: key)
      let parameters = NoiseParameters(
        prologue: transcript.bytes + proof.suffix(32) + confirmation, keys: deviceKeys(77),
        entropy: SharedEntropy(SeededEntropy(seed: 77)))
      let psk = SharedPresharedKey(agreement.presharedKey.copy())
      let opens = (try? parameters.start(.responder, psk: psk).read(first)) != nil
      let proves =
        transcript.joinerProof(under: key).bytes == Array(proof.suffix(32))
        || agreement.confirmation == confirmation
      return opens || proves
    }

    /// The key for an element in the place of the one that only the two could compute.
    func key(_ point: borrowing SecretBytes) throws -> CPaceKey {
      let transcript = try transcript
      func part(_ share: CPaceShare) -> [UInt8] {
        CPaceText.prefixed(share.bytes) + CPaceText.prefixed([])
      }
      return CPace.key(
        session: transcript.session, point: point,
        transcript: part(transcript.inviterShare) + part(transcript.joinerShare))
    }
  }

  @Test func cannotBeOpenedWithTheCode() async throws {
    var configuration = PairingConfiguration()
    configuration.hosts = ["127.0.0.1"]
    let code = CodePairingTests.code(1)
    let listener = PairingListener(
      keys: deviceKeys(1), token: psk(1), code: code, invitation: [1, 2, 3],
      configuration: configuration)
    let address = try #require(try await listener.bind().first)
    var recorder = FaultyProxy.Configuration()
    recorder.recordingLimitBytes = 1 << 16
    let limits = configuration
    let recording = try await FaultyProxy.with(
      target: Int(address.port), configuration: recorder
    ) { proxy in
      async let accepted = listener.accept()
      let joiner = try await PairingDialler(
        keys: deviceKeys(2), configuration: limits,
        entropy: SeededEntropy(seed: 5)
      ).connect(
        to: PeerAddress(host: "127.0.0.1", port: UInt16(proxy.port)), code: TypedCode(code)
      ) { _, _ in [9] }
      _ = try await accepted
      joiner.close()
      return try Recording(proxy)
    }
    await listener.close()

    // The joiner itself, which has its scalar: what is checked below would see success.
    var entropy = SeededEntropy(seed: 5)
    var joiner = CodeJoiner(code: code, entropy: &entropy)
    #expect(joiner.hello == recording.hello)
    #expect(try joiner.prove(to: recording.offer, entropy: &entropy) == recording.proof)
    var replay = SeededEntropy(seed: 5)
    _ = replay.bytes(CodeExchange.nonceBytes)
    let session = try recording.transcript.session
    let side = try CodeExchange.side(code, session: session, entropy: &replay)
    let real = try side.key(setting: .responder, remote: recording.transcript.inviterShare)
    #expect(try recording.isOpened(by: real))

    // The code gives the generator. Only the scalar of either side is missing: the attempts are all
    // elements at hand, and their products with scalars of one's own.
    let generator = CPace.generator(
      password: code.password,
      channel: CPace.channel(
        CodeExchange.name, Array("inviter".utf8), Array("joiner".utf8)), session: session)
    let transcript = try recording.transcript
    let elements = [
      generator.withUnsafeBytes { Array($0) }, transcript.inviterShare.bytes,
      transcript.joinerShare.bytes, [UInt8](repeating: 0, count: 32),
    ]
    var attacker = SeededEntropy(seed: 6)
    for element in elements {
      var bytes = element
      let known = SecretBytes(zeroing: &bytes)
      #expect(try !recording.isOpened(by: recording.key(known)))
      for _ in 0..<20 {
        let scalar = CPaceScalar(random: &attacker)
        let share = try CPaceShare(element)
        do {
          let product = try share.withUnsafeBytes { bytes throws(CryptoError) -> SecretBytes in
            try scalar.times(bytes)
          }
          #expect(try !recording.isOpened(by: recording.key(product)))
        } catch CryptoError.invalidKey {
          // The identity's products.
        }
      }
    }
    // Nor does taking either side's place again: the other's part of the run is over.
    for _ in 0..<20 {
      let side = try CodeExchange.side(code, session: session, entropy: &attacker)
      let key = try side.key(setting: .responder, remote: transcript.inviterShare)
      #expect(try !recording.isOpened(by: key))
      let other = try CodeExchange.side(code, session: session, entropy: &attacker)
      let otherKey = try other.key(setting: .initiator, remote: transcript.joinerShare)
      #expect(try !recording.isOpened(by: otherKey))
    }
  }
}
