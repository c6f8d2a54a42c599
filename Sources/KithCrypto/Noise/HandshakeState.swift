import CSodium

/// One side of a Noise handshake (revision 34, section 5.3); pure, as the caller passes the
/// ephemeral key.
///
/// The sides take turns until `isFinished`; then call `split`. An error ends the handshake: it
/// wipes the secrets, and later calls throw `failedBefore`. A listener with several pre-shared keys
/// tries the first message with a state for each.
package struct HandshakeState: ~Copyable, Sendable {
  private enum Stage { case running, finished, failed }

  private let pattern: HandshakePattern
  private let role: HandshakeRole
  private let mixesEphemeralKeys: Bool
  private var symmetric: SymmetricState
  private var stage = Stage.running
  private var messageIndex = 0
  private var presharedKeyIndex = 0

  /// The other side's static key, once known. Only a message that was read completely sets it.
  package private(set) var remoteStaticKey: TransportPublicKey?

  package private(set) var remoteEphemeralKey: TransportPublicKey?

  /// Throws if the secrets do not fit the pattern, or `remoteStatic` does not: the other side's
  /// static key, if the pattern needs it beforehand.
  package init(
    protocol noiseProtocol: NoiseProtocol, role: HandshakeRole, prologue: [UInt8],
    secrets: consuming HandshakeSecrets, remoteStatic: TransportPublicKey? = nil
  ) throws(NoiseError) {
    pattern = noiseProtocol.pattern
    self.role = role
    let remoteRole: HandshakeRole = role == .initiator ? .responder : .initiator
    if pattern.usesStaticKey(of: role), secrets.staticPublicKey == nil { throw .missingStaticKey }
    if pattern.isKnown(remoteRole), remoteStatic == nil { throw .missingRemoteStaticKey }
    if !pattern.isKnown(remoteRole), remoteStatic != nil { throw .unexpectedRemoteStaticKey }
    let expected = pattern.presharedKeyCount
    let actual = secrets.presharedKeyCount
    guard expected == actual else {
      throw .wrongPresharedKeyCount(expected: expected, actual: actual)
    }
    mixesEphemeralKeys = expected > 0
    remoteStaticKey = remoteStatic
    let ownStaticKey = secrets.staticPublicKey
    symmetric = SymmetricState(protocolName: noiseProtocol.name, secrets: secrets)
    symmetric.mixHash(prologue)
    for known in [HandshakeRole.initiator, .responder] where pattern.isKnown(known) {
      guard let key = known == role ? ownStaticKey : remoteStatic else { continue }
      key.withUnsafeBytes { symmetric.mixHash($0) }
    }
  }

  /// Makes the state of a pattern with a static key and one pre-shared key, as for XXpsk0.
  package init(
    protocol noiseProtocol: NoiseProtocol, role: HandshakeRole, prologue: [UInt8],
    staticKey: borrowing TransportPrivateKey, ephemeral: borrowing TransportPrivateKey,
    psk: borrowing PresharedKey, remoteStatic: TransportPublicKey? = nil
  ) throws(NoiseError) {
    var secrets = HandshakeSecrets(ephemeral: ephemeral, staticKey: staticKey)
    try secrets.add(psk)
    try self.init(
      protocol: noiseProtocol, role: role, prologue: prologue, secrets: secrets,
      remoteStatic: remoteStatic)
  }

  /// The hash of all messages so far; after the handshake it identifies the session.
  package var handshakeHash: [UInt8] { symmetric.hash }

  package var isFinished: Bool { stage == .finished }

  package var isTurnToWrite: Bool {
    stage == .running && (messageIndex % 2 == 0) == (role == .initiator)
  }

  /// The pattern decides how secret the payload is.
  package mutating func writeMessage(payload: [UInt8]) throws(NoiseError) -> [UInt8] {
    do throws(NoiseError) {
      try checkTurn(isWriting: true)
      var message: [UInt8] = []
      for token in pattern.messages[messageIndex] { try write(token, into: &message) }
      let tagCount = symmetric.hasKey ? CipherState.overhead : 0
      guard message.count + payload.count + tagCount <= noiseMessageByteLimit else {
        throw .messageTooLong
      }
      symmetric.encryptAndHash(payload, into: &message)
      advance()
      return message
    } catch {
      fail()
      throw error
    }
  }

  package mutating func readMessage(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
    let staticKeyBefore = remoteStaticKey
    do throws(NoiseError) {
      try checkTurn(isWriting: false)
      guard message.count <= noiseMessageByteLimit else { throw .messageTooLong }
      var rest = message[...]
      for token in pattern.messages[messageIndex] { try read(token, from: &rest) }
      let payload = try symmetric.decryptAndHash(rest)
      advance()
      return payload
    } catch {
      remoteStaticKey = staticKeyBefore
      fail()
      throw error
    }
  }

  /// After a one-way pattern, the unused directions throw `nonceExhausted` for every message.
  package consuming func split() throws(NoiseError) -> TransportPair {
    guard stage == .finished else { throw stage == .failed ? .failedBefore : .wrongStage }
    let isOneWay = pattern.isOneWay
    let role = role
    let keys = symmetric.split()
    let forward = CipherState(key: keys.first)
    let backward = CipherState(key: keys.second, nextNonce: isOneWay ? .max : 0)
    return switch role {
    case .initiator: TransportPair(send: forward, receive: backward)
    case .responder: TransportPair(send: backward, receive: forward)
    }
  }

  private borrowing func checkTurn(isWriting: Bool) throws(NoiseError) {
    switch stage {
    case .failed: throw .failedBefore
    case .finished: throw .wrongStage
    case .running: guard isTurnToWrite == isWriting else { throw .outOfTurn }
    }
  }

  private mutating func advance() {
    messageIndex += 1
    if messageIndex == pattern.messages.count { stage = .finished }
  }

  private mutating func fail() {
    stage = .failed
    symmetric.secrets.wipe()
  }

  private mutating func write(
    _ token: HandshakeToken, into message: inout [UInt8]
  ) throws(NoiseError) {
    switch token {
    case .e:
      let key = symmetric.secrets.ephemeralPublicKey
      message += key.bytes
      mixEphemeralKey(key)
    case .s:
      guard let key = symmetric.secrets.staticPublicKey else { throw .missingStaticKey }
      symmetric.encryptAndHash(key.bytes, into: &message)
    case .ee, .es, .se, .ss, .psk:
      try mix(token)
    }
  }

  private mutating func read(
    _ token: HandshakeToken, from rest: inout ArraySlice<UInt8>
  ) throws(NoiseError) {
    switch token {
    case .e:
      let key = try Self.publicKey(Self.readBytes(TransportPublicKey.byteCount, from: &rest))
      remoteEphemeralKey = key
      mixEphemeralKey(key)
    case .s:
      let tagCount = symmetric.hasKey ? CipherState.overhead : 0
      let sealed = try Self.readBytes(TransportPublicKey.byteCount + tagCount, from: &rest)
      remoteStaticKey = try Self.publicKey(symmetric.decryptAndHash(sealed)[...])
    case .ee, .es, .se, .ss, .psk:
      try mix(token)
    }
  }

  private mutating func mixEphemeralKey(_ key: TransportPublicKey) {
    key.withUnsafeBytes { symmetric.mixHash($0) }
    // Section 9.2: with a psk, ephemeral keys are mixed into the key as well, so that it is fresh.
    if mixesEphemeralKeys { symmetric.mixKey(key) }
  }

  /// Mixes a token that both sides compute alike; its first letter is the initiator's key.
  private mutating func mix(_ token: HandshakeToken) throws(NoiseError) {
    let ownIsEphemeral: Bool
    let remoteIsEphemeral: Bool
    switch token {
    case .e, .s: return
    case .psk:
      symmetric.mixPresharedKey(presharedKeyIndex)
      presharedKeyIndex += 1
      return
    case .ee: (ownIsEphemeral, remoteIsEphemeral) = (true, true)
    case .ss: (ownIsEphemeral, remoteIsEphemeral) = (false, false)
    case .es: (ownIsEphemeral, remoteIsEphemeral) = (role == .initiator, role == .responder)
    case .se: (ownIsEphemeral, remoteIsEphemeral) = (role == .responder, role == .initiator)
    }
    guard let remote = remoteIsEphemeral ? remoteEphemeralKey : remoteStaticKey else {
      throw .missingRemoteStaticKey
    }
    try symmetric.mixSharedSecret(
      ownIsEphemeral ? HandshakeSecrets.Layout.ephemeralKey : HandshakeSecrets.Layout.staticKey,
      remote)
  }

  private static func readBytes(
    _ count: Int, from rest: inout ArraySlice<UInt8>
  ) throws(NoiseError) -> ArraySlice<UInt8> {
    guard rest.count >= count else { throw .messageTooShort }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  private static func publicKey(_ bytes: ArraySlice<UInt8>) throws(NoiseError)
    -> TransportPublicKey
  {
    do { return try TransportPublicKey(bytes) } catch { throw .messageTooShort }
  }
}

/// The secrets of one handshake, given and computed, in one piece of guarded memory.
package struct HandshakeSecrets: ~Copyable, Sendable {
  var memory: GuardedBuffer
  let ephemeralPublicKey: TransportPublicKey
  let staticPublicKey: TransportPublicKey?
  private(set) var presharedKeyCount = 0

  /// The maximum of any pattern: before the first message, and after each of three.
  static let presharedKeyLimit = 4

  /// The ephemeral key must be random, for this handshake alone.
  package init(ephemeral: borrowing TransportPrivateKey) {
    memory = GuardedBuffer(count: Layout.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = nil
    ephemeral.withUnsafeBytes { store($0, at: Layout.ephemeralKey) }
  }

  /// The ephemeral key must be random, for this handshake alone.
  package init(
    ephemeral: borrowing TransportPrivateKey, staticKey: borrowing TransportPrivateKey
  ) {
    memory = GuardedBuffer(count: Layout.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = staticKey.publicKey
    ephemeral.withUnsafeBytes { store($0, at: Layout.ephemeralKey) }
    staticKey.withUnsafeBytes { store($0, at: Layout.staticKey) }
  }

  /// Adds the key for the pattern's next `psk`; throws `wrongPresharedKeyCount` after the fourth.
  package mutating func add(_ key: borrowing PresharedKey) throws(NoiseError) {
    guard presharedKeyCount < Self.presharedKeyLimit else {
      throw .wrongPresharedKeyCount(
        expected: Self.presharedKeyLimit, actual: presharedKeyCount + 1)
    }
    let range = Layout.presharedKey(presharedKeyCount)
    key.withUnsafeBytes { store($0, at: range) }
    presharedKeyCount += 1
  }

  mutating func wipe() {
    memory.withUnsafeMutableBytes { Sodium.zero($0) }
  }

  mutating func store(_ bytes: UnsafeRawBufferPointer, at range: Range<Int>) {
    memory.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[range]).copyMemory(from: bytes)
    }
  }

  enum Layout {
    static let chainingKey = 0..<64
    static let cipherKey = 64..<96
    static let staticKey = 96..<128
    static let ephemeralKey = 128..<160
    static let sharedSecret = 160..<192
    static let scratch = 192..<256
    static let outputs = 256..<448
    static let end = 448 + 32 * presharedKeyLimit

    static func presharedKey(_ index: Int) -> Range<Int> {
      (448 + 32 * index)..<(480 + 32 * index)
    }
  }
}
