import KithCrypto
import Testing

@Suite("The Noise handshake")
struct HandshakeTests {
  private static let prologue = [UInt8]("Kith/1".utf8)

  /// One side of Kith's own handshake, with keys named by its role.
  private func start(
    _ role: HandshakeRole, psk: UInt8 = 1, prologue: [UInt8] = prologue
  ) throws -> HandshakeState {
    let mark: UInt8 = role == .initiator ? 10 : 20
    return try HandshakeState(
      protocol: NoiseProtocol("Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"), role: role,
      prologue: prologue, staticKey: key([UInt8](repeating: mark, count: 32)),
      ephemeral: key([UInt8](repeating: mark + 1, count: 32)),
      psk: key([UInt8](repeating: psk, count: 32)))
  }

  /// Runs the handshake, with message `step` changed on its way.
  private func run(
    altering step: Int? = nil, _ alter: (inout [UInt8]) -> Void = { _ in }
  ) throws -> (messages: [[UInt8]], error: NoiseError?, poisoned: Bool) {
    var dialler = try start(.initiator)
    var listener = try start(.responder)
    var messages: [[UInt8]] = []
    for index in 0..<3 {
      let payload = [UInt8](repeating: UInt8(index), count: 9)
      var message =
        index == 1
        ? try listener.writeMessage(payload: payload) : try dialler.writeMessage(payload: payload)
      messages.append(message)
      guard index == step else {
        _ = index == 1 ? try dialler.readMessage(message) : try listener.readMessage(message)
        continue
      }
      alter(&message)
      let original = messages[index]
      if index == 1 {
        let error = caught { () throws(NoiseError) in _ = try dialler.readMessage(message) }
        let again = caught { () throws(NoiseError) in _ = try dialler.readMessage(original) }
        let isClean = dialler.remoteStaticKey == nil
        return (messages, error, again == .failedBefore && isClean)
      }
      let error = caught { () throws(NoiseError) in _ = try listener.readMessage(message) }
      let again = caught { () throws(NoiseError) in _ = try listener.readMessage(original) }
      let isClean = listener.remoteStaticKey == nil
      return (messages, error, again == .failedBefore && isClean)
    }
    return (messages, nil, false)
  }

  @Test("Altering any byte of any message ends the handshake for good", arguments: 0..<3)
  func tampering(_ step: Int) throws {
    let message = try run().messages[step]
    for index in message.indices {
      for mask in [UInt8(0x01), 0x80] {
        // The top bit of an X25519 key does not count in the DH, but does in the hash.
        let result = try run(altering: step) { $0[index] ^= mask }
        #expect(result.error == .authenticationFailed, "byte \(index) of message \(step)")
        #expect(result.poisoned)
      }
    }
  }

  @Test("Cutting or lengthening any message ends the handshake", arguments: 0..<3)
  func truncation(_ step: Int) throws {
    let message = try run().messages[step]
    for count in message.indices {
      let result = try run(altering: step) { $0.removeLast($0.count - count) }
      let error = try #require(result.error)
      #expect([.messageTooShort, .authenticationFailed].contains(error))
      #expect(result.poisoned)
    }
    #expect(try run(altering: step) { $0.append(0) }.error == .authenticationFailed)
  }

  @Test("Static and ephemeral keys are known when they should be")
  func remoteKeys() throws {
    var dialler = try start(.initiator)
    var listener = try start(.responder)
    _ = try listener.readMessage(try dialler.writeMessage(payload: []))
    let ephemeral = listener.remoteEphemeralKey
    let early = listener.remoteStaticKey
    _ = try dialler.readMessage(try listener.writeMessage(payload: []))
    let seen = dialler.remoteStaticKey
    _ = try listener.readMessage(try dialler.writeMessage(payload: []))
    let late = listener.remoteStaticKey
    let mine = key([UInt8](repeating: 11, count: 32), as: TransportPrivateKey.self).publicKey
    let static1 = key([UInt8](repeating: 10, count: 32), as: TransportPrivateKey.self).publicKey
    let static2 = key([UInt8](repeating: 20, count: 32), as: TransportPrivateKey.self).publicKey
    #expect(ephemeral == mine)
    #expect(early == nil)
    #expect(seen == static2)
    #expect(late == static1)
  }

  @Test("Another psk or prologue fails at the first message")
  func mismatch() throws {
    var dialler = try start(.initiator)
    let message = try dialler.writeMessage(payload: [])
    #expect(message.count == 48)
    var wrongPsk = try start(.responder, psk: 2)
    var wrongPrologue = try start(.responder, prologue: [])
    let errors = [
      caught { () throws(NoiseError) in _ = try wrongPsk.readMessage(message) },
      caught { () throws(NoiseError) in _ = try wrongPrologue.readMessage(message) },
    ]
    #expect(errors == [.authenticationFailed, .authenticationFailed])
    // A listener with several epochs tries one state for each.
    var second = try start(.responder, psk: 1)
    let payload = try second.readMessage(message)
    #expect(payload == [])
  }

  @Test("Messages out of turn, too long, or after the end are refused")
  func order() throws {
    var reader = try start(.initiator)
    let outOfTurn = caught { () throws(NoiseError) in _ = try reader.readMessage([1]) }
    let after = caught { () throws(NoiseError) in _ = try reader.writeMessage(payload: []) }
    #expect(outOfTurn == .outOfTurn)
    #expect(after == .failedBefore)

    var writer = try start(.initiator)
    let large = [UInt8](repeating: 0, count: 65_535 - 47)
    let tooLong = caught { () throws(NoiseError) in _ = try writer.writeMessage(payload: large) }
    #expect(tooLong == .messageTooLong)
    var fitting = try start(.initiator)
    let longest = try fitting.writeMessage(payload: Array(large.dropLast()))
    #expect(longest.count == 65_535)
    var listener = try start(.responder)
    let overlong = caught { () throws(NoiseError) in _ = try listener.readMessage(longest + [0]) }
    #expect(overlong == .messageTooLong)

    let early = try start(.initiator)
    var stage: NoiseError?
    do throws(NoiseError) { _ = try early.split() } catch { stage = error }
    #expect(stage == .wrongStage)
  }

  @Test("A key of low order is refused as ephemeral and as static", arguments: lowOrderPoints)
  func lowOrder(_ point: [UInt8]) throws {
    // NN has no psk: the responder reads the key, and fails when it computes the DH.
    let nn = try NoiseProtocol("Noise_NN_25519_ChaChaPoly_BLAKE2b")
    var responder = try HandshakeState(
      protocol: nn, role: .responder, prologue: [],
      secrets: HandshakeSecrets(ephemeral: key(seedBytes)))
    _ = try responder.readMessage(point)
    let ephemeral = caught { () throws(NoiseError) in _ = try responder.writeMessage(payload: []) }
    #expect(ephemeral == .invalidPublicKey)

    let nk = try NoiseProtocol("Noise_NK_25519_ChaChaPoly_BLAKE2b")
    var initiator = try HandshakeState(
      protocol: nk, role: .initiator, prologue: [],
      secrets: HandshakeSecrets(ephemeral: key(seedBytes)),
      remoteStatic: TransportPublicKey(point))
    let known = caught { () throws(NoiseError) in _ = try initiator.writeMessage(payload: []) }
    #expect(known == .invalidPublicKey)
  }

  @Test("A handshake does not start without the keys of its pattern")
  func missingKeys() throws {
    func error(
      _ pattern: String, _ role: HandshakeRole, psks: Int = 0, hasStatic: Bool = false,
      remote: [UInt8]? = nil
    ) throws -> NoiseError? {
      let name = try NoiseProtocol("Noise_\(pattern)_25519_ChaChaPoly_BLAKE2b")
      let remote = try remote.map { try TransportPublicKey($0) }
      return caught { () throws(NoiseError) in
        var secrets =
          hasStatic
          ? HandshakeSecrets(ephemeral: key(seedBytes), staticKey: key(otherSeedBytes))
          : HandshakeSecrets(ephemeral: key(seedBytes))
        for _ in 0..<psks { try secrets.add(key(seedBytes)) }
        _ = try HandshakeState(
          protocol: name, role: role, prologue: [], secrets: secrets, remoteStatic: remote)
      }
    }
    #expect(try error("NN", .initiator) == nil)
    #expect(try error("XX", .initiator) == .missingStaticKey)
    #expect(try error("NK", .initiator) == .missingRemoteStaticKey)
    #expect(try error("NK", .responder) == .missingStaticKey)
    #expect(try error("N", .initiator) == .missingRemoteStaticKey)
    #expect(try error("N", .responder, hasStatic: true) == nil)
    #expect(
      try error("XX", .initiator, hasStatic: true, remote: seedBytes) == .unexpectedRemoteStaticKey)
    #expect(
      try error("NNpsk0+psk2", .initiator, psks: 1)
        == .wrongPresharedKeyCount(expected: 2, actual: 1))
    #expect(
      try error("NN", .initiator, psks: 1) == .wrongPresharedKeyCount(expected: 0, actual: 1))
    #expect(
      try error("NN", .initiator, psks: 5) == .wrongPresharedKeyCount(expected: 4, actual: 5))
  }

  @Test(
    "Only names of this suite are spoken",
    arguments: [
      "", "Noise", "Noise_XX_25519_ChaChaPoly_SHA256", "Noise_XX_25519_AESGCM_BLAKE2b",
      "Noise_XX_448_ChaChaPoly_BLAKE2b", "Noise_ZZ_25519_ChaChaPoly_BLAKE2b",
      "Noise_XXpsk4_25519_ChaChaPoly_BLAKE2b", "Noise_XXpsk0+psk0_25519_ChaChaPoly_BLAKE2b",
      "Noise_XXpsk3+psk0_25519_ChaChaPoly_BLAKE2b", "Noise_XXpsk_25519_ChaChaPoly_BLAKE2b",
      "Noise_XXpsk0+_25519_ChaChaPoly_BLAKE2b", "Noise_XXfallback_25519_ChaChaPoly_BLAKE2b",
      "Noise_XX_25519_ChaChaPoly_BLAKE2b_", "Noise_XXpsk00_25519_ChaChaPoly_BLAKE2b",
      "noise_XX_25519_ChaChaPoly_BLAKE2b",
    ])
  func names(_ name: String) {
    #expect(throws: NoiseError.unsupportedProtocol(name)) { try NoiseProtocol(name) }
  }
}
