@testable import KithCrypto

/// Two sides of a handshake, with a party between them that does as the input says.
private struct NoiseRun: ~Copyable {
  static let patterns = [
    "XXpsk0", "XXpsk0", "XXpsk0", "XX", "NN", "IK", "KK", "NNpsk2", "XXpsk3", "N", "X", "IXpsk0",
    "XXpsk0+psk3",
  ]
  let name: String
  var initiator: HandshakeState
  var responder: HandshakeState
  var hasAltered: Bool

  /// The two sides, as the input says.
  static func begin(_ input: inout FuzzInput) -> NoiseRun {
    let pattern = Self.patterns[input.number(below: Self.patterns.count)]
    let name = "Noise_\(pattern)_25519_ChaChaPoly_BLAKE2b"
    // A wrong key or prologue on one side is an alteration like any other.
    let differs = input.byte()
    do {
      let proto = try NoiseProtocol(name)
      return NoiseRun(
        name: name, initiator: try side(proto, .initiator, "Kith/1", 1),
        responder: try side(
          proto, .responder, differs & 1 == 0 ? "Kith/1" : "Kith/2", differs & 2 == 0 ? 1 : 9),
        hasAltered: differs & 1 != 0 || differs & 2 != 0 && proto.presharedKeyCount > 0)
    } catch {
      fatalError("\(name) cannot begin: \(error)")
    }
  }

  private static func key<Key: SecretKey & ~Copyable>(_ byte: UInt8) -> Key {
    Key(unchecked: SecretBytes(count: 32) { $0.copyBytes(from: repeatElement(byte, count: 32)) })
  }

  private static func side(
    _ proto: NoiseProtocol, _ role: HandshakeRole, _ prologue: String, _ psk: UInt8
  ) throws -> HandshakeState {
    let pattern = proto.name.split(separator: "_")[1].prefix { $0.isUppercase }
    let isInitiator = role == .initiator
    let ephemeral: TransportPrivateKey = key(isInitiator ? 3 : 4)
    let own: TransportPrivateKey = key(isInitiator ? 5 : 6)
    let other: TransportPrivateKey = key(isInitiator ? 6 : 5)
    // The letters tell whose static key the pattern knows beforehand, or sends.
    let ownLetter = isInitiator ? pattern.first : pattern.last
    let otherLetter = isInitiator ? pattern.last : pattern.first
    let isOneWay = pattern.count == 1
    let hasOwn = ownLetter != "N" || isOneWay && !isInitiator
    let knowsOther = otherLetter == "K" || isOneWay && isInitiator
    var secrets =
      hasOwn
      ? HandshakeSecrets(ephemeral: ephemeral, staticKey: own)
      : HandshakeSecrets(ephemeral: ephemeral)
    for _ in 0..<proto.presharedKeyCount {
      let shared: PresharedKey = key(psk)
      try secrets.add(shared)
    }
    return try HandshakeState(
      protocol: proto, role: role, prologue: Array(prologue.utf8), secrets: secrets,
      remoteStatic: knowsOther ? other.publicKey : nil)
  }
}

extension FuzzTarget {
  /// The handshake, both roles, with messages altered, cut, replayed and out of turn.
  ///
  /// Untouched messages are taken and give their payloads; under `psk0` an altered one never is.
  /// Both sides end with one hash only if they saw one transcript. After that an altered, repeated
  /// or reordered transport message does not open, but the next right one does.
  static let noise = FuzzTarget(name: "noise") { bytes in
    var input = FuzzInput(bytes)
    var run = NoiseRun.begin(&input)
    let refusesAtOnce = run.name.contains("psk0")
    var meddler = Meddler()
    var isInitiators = true
    while !run.initiator.isFinished || !run.responder.isFinished {
      let payload = input.take(input.number(below: 64))
      // Out of turn nothing may happen but an end.
      if input.byte() == 0xff {
        _ = try? run.initiator.readMessage(payload)
        _ = try? run.responder.writeMessage(payload: payload)
      }
      let written =
        isInitiators
        ? try? run.initiator.writeMessage(payload: payload)
        : try? run.responder.writeMessage(payload: payload)
      guard let written else { return }
      let arrived = meddler.pass(written, &input)
      let read =
        isInitiators
        ? try? run.responder.readMessage(arrived) : try? run.initiator.readMessage(arrived)
      if arrived != written { run.hasAltered = true }
      if !run.hasAltered {
        require(read == payload, "\(run.name): an untouched message was not read")
      }
      if run.hasAltered, refusesAtOnce {
        require(read == nil, "\(run.name): an altered message was read")
      }
      guard read != nil else {
        // The end is for good.
        let after =
          isInitiators
          ? try? run.responder.readMessage(written) : try? run.initiator.readMessage(written)
        require(after == nil, "\(run.name): a handshake went on after its end")
        return
      }
      isInitiators.toggle()
    }
    let isOneTranscript = run.initiator.handshakeHash == run.responder.handshakeHash
    require(isOneTranscript == !run.hasAltered, "\(run.name): the hash says the wrong thing")
    guard isOneTranscript else { return }
    transport(run, &input)
  } seeds: {
    NoiseSeeds.all
  }

  private static func transport(_ run: consuming NoiseRun, _ input: inout FuzzInput) {
    let isOneWay = run.name.contains("_N_") || run.name.contains("_X_")
    guard let pairs = run.split() else { fatalError("not split") }
    var one = pairs.one
    var two = pairs.two
    var meddler = Meddler()
    for _ in 0..<64 where !input.isAtEnd {
      let isForward = isOneWay || input.bool()
      let plaintext = input.take(input.number(below: 80))
      let nonce = isForward ? two.receive.nextNonce : one.receive.nextNonce
      guard
        let sealed = isForward ? try? one.send.encrypt(plaintext) : try? two.send.encrypt(plaintext)
      else { fatalError("not encrypted") }
      let arrived = meddler.pass(sealed, &input)
      if arrived != sealed {
        let opened =
          isForward ? try? two.receive.decrypt(arrived) : try? one.receive.decrypt(arrived)
        require(opened == nil, "an altered message opened")
        require(
          nonce == (isForward ? two.receive.nextNonce : one.receive.nextNonce),
          "the counter moved by a message that did not open")
      }
      let opened = isForward ? try? two.receive.decrypt(sealed) : try? one.receive.decrypt(sealed)
      require(opened == plaintext, "a right message did not open")
      let again = isForward ? try? two.receive.decrypt(sealed) : try? one.receive.decrypt(sealed)
      require(again == nil, "a repeated message opened")
    }
  }
}

/// The transports of both sides.
private struct Pairs: ~Copyable {
  var one: TransportPair
  var two: TransportPair
}

extension NoiseRun {
  fileprivate consuming func split() -> Pairs? {
    guard let one = try? initiator.split(), let two = try? responder.split() else { return nil }
    return Pairs(one: one, two: two)
  }
}

private enum NoiseSeeds {
  /// One run of each pattern with nothing altered, and one for each way of meddling.
  static var all: [(name: String, bytes: [UInt8])] {
    var seeds: [(String, [UInt8])] = []
    for (index, pattern) in NoiseRun.patterns.enumerated() where index > 1 {
      seeds.append((pattern, run(index, meddling: [11, 11, 11])))
    }
    for way in 0..<7 {
      for message in 0..<3 {
        var ways = [11, 11, 11]
        ways[message] = way
        seeds.append(("meddled \(way) \(message)", run(0, meddling: ways)))
      }
    }
    return seeds
  }

  private static func run(_ pattern: Int, meddling ways: [Int]) -> [UInt8] {
    var output = FuzzOutput()
    output.bytes(pattern, 0)
    for way in ways {
      output.byte(3)
      output.raw([1, 2, 3])
      output.bytes(0, way)
      switch way {
      case 0, 2: output.block([9, 9, 9])
      case 1: output.bytes(0, 47)
      case 3, 6: output.byte(0)
      case 4, 5: output.bytes(0, 40, 1)
      default: break
      }
    }
    for direction in [1, 0, 1] {
      output.bytes(direction, 2, 5, 6, 4, 0, 3, 8)
    }
    return output.bytes
  }
}
