import Foundation
import KithCrypto
import Testing

/// One published run of a handshake and the messages after it.
struct NoiseVector: Decodable, Sendable, CustomTestStringConvertible {
  struct Message: Decodable {
    let payload: String
    let ciphertext: String
  }

  let protocolName: String
  let initPrologue: String
  let initEphemeral: String
  let initStatic: String?
  let initRemoteStatic: String?
  let initPsks: [String]?
  let respPrologue: String
  let respEphemeral: String?
  let respStatic: String?
  let respRemoteStatic: String?
  let respPsks: [String]?
  let handshakeHash: String?
  let messages: [Message]

  var testDescription: String { protocolName }

  /// The vectors of the file that `KITH_NOISE_VECTORS` names, or the repository's own.
  static func all() throws -> [NoiseVector] {
    struct File: Decodable { let vectors: [NoiseVector] }
    let own = try #require(
      Bundle.module.url(forResource: "Vectors/noise-own", withExtension: "json"))
    let url =
      ProcessInfo.processInfo.environment["KITH_NOISE_VECTORS"]
      .map { URL(fileURLWithPath: $0) } ?? own
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(File.self, from: Data(contentsOf: url)).vectors
  }

  func start(_ role: HandshakeRole) throws -> HandshakeState {
    let isInitiator = role == .initiator
    let ephemeral: TransportPrivateKey = key(
      hex((isInitiator ? initEphemeral : respEphemeral) ?? String(repeating: "ab", count: 32)))
    var secrets: HandshakeSecrets
    if let text = isInitiator ? initStatic : respStatic {
      secrets = HandshakeSecrets(ephemeral: ephemeral, staticKey: key(hex(text)))
    } else {
      secrets = HandshakeSecrets(ephemeral: ephemeral)
    }
    for psk in (isInitiator ? initPsks : respPsks) ?? [] { try secrets.add(key(hex(psk))) }
    let remote = isInitiator ? initRemoteStatic : respRemoteStatic
    return try HandshakeState(
      protocol: NoiseProtocol(protocolName), role: role,
      prologue: hex(isInitiator ? initPrologue : respPrologue), secrets: secrets,
      remoteStatic: remote.map { try TransportPublicKey(hex($0)) })
  }
}

@Suite("Noise test vectors")
struct NoiseVectorTests {
  @Test("A run gives the published bytes, on both sides", arguments: try NoiseVector.all())
  func run(_ vector: NoiseVector) throws {
    var initiator = try vector.start(.initiator)
    var responder = try vector.start(.responder)
    var index = 0
    while !initiator.isFinished {
      let payload = hex(vector.messages[index].payload)
      let message: [UInt8]
      let received: [UInt8]
      if index % 2 == 0 {
        message = try initiator.writeMessage(payload: payload)
        received = try responder.readMessage(message)
      } else {
        message = try responder.writeMessage(payload: payload)
        received = try initiator.readMessage(message)
      }
      #expect(message == hex(vector.messages[index].ciphertext), "message \(index)")
      #expect(received == payload, "message \(index)")
      index += 1
    }
    let handshakeMessageCount = index
    let (hash, otherHash) = (initiator.handshakeHash, responder.handshakeHash)
    #expect(hash == otherHash)
    if let expected = vector.handshakeHash { #expect(hash == hex(expected)) }
    let bothFinished = initiator.isFinished && responder.isFinished
    #expect(bothFinished)

    var left = try initiator.split()
    var right = try responder.split()
    let isOneWay = handshakeMessageCount == 1
    #expect(index < vector.messages.count)
    for index in handshakeMessageCount..<vector.messages.count {
      let payload = hex(vector.messages[index].payload)
      let message: [UInt8]
      let received: [UInt8]
      if isOneWay || index % 2 == 0 {
        message = try left.send.encrypt(payload)
        received = try right.receive.decrypt(message)
      } else {
        message = try right.send.encrypt(payload)
        received = try left.receive.decrypt(message)
      }
      #expect(message == hex(vector.messages[index].ciphertext), "message \(index)")
      #expect(received == payload, "message \(index)")
    }
    if isOneWay {
      let error = caught { () throws(NoiseError) in _ = try right.send.encrypt([1]) }
      #expect(error == .nonceExhausted)
    }
  }
}
