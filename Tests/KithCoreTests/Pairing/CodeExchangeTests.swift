import KithCrypto
import Testing

@testable import KithCore

struct CodeExchangeTests {
  /// Both sides of an exchange, and what travelled.
  struct Run: ~Copyable {
    var inviter: CodeInviter
    var joiner: CodeJoiner
    var hello: [UInt8]
    var entropy: SeededEntropy

    init(seed: UInt64, sameCode: Bool = true) {
      entropy = SeededEntropy(seed: seed)
      let code = PairingCode(random: &entropy)
      inviter = CodeInviter(code: code)
      joiner = CodeJoiner(
        code: sameCode ? code : PairingCode(random: &entropy), entropy: &entropy)
      hello = joiner.hello
    }
  }

  /// Runs an exchange in which each message may be altered on its way. Gives whether both sides came
  /// to the same.
  func agrees(
    seed: UInt64, sameCode: Bool = true, altering: (Int, [UInt8]) -> [UInt8] = { $1 }
  ) throws(CodeExchangeError) -> Bool {
    var run = Run(seed: seed, sameCode: sameCode)
    let offer = try run.inviter.offer(to: altering(0, run.hello), entropy: &run.entropy)
    let proof = try run.joiner.prove(to: altering(1, offer), entropy: &run.entropy)
    let theirs = try run.inviter.confirm(altering(2, proof))
    let ours = try run.joiner.finish(altering(3, theirs.confirmation))
    return ours.presharedKey.isSame(as: theirs.presharedKey) && ours.prologue == theirs.prologue
  }

  @Test func whoHasTheSameCodeAgrees() throws {
    for seed in 1...8 as ClosedRange<UInt64> { #expect(try agrees(seed: seed)) }
    var run = Run(seed: 1)
    #expect(run.hello.count == CodeExchange.helloBytes)
    let offer = try run.inviter.offer(to: run.hello, entropy: &run.entropy)
    #expect(offer.count == CodeExchange.offerBytes)
    let proof = try run.joiner.prove(to: offer, entropy: &run.entropy)
    #expect(proof.count == CodeExchange.proofBytes)
    let agreement = try run.inviter.confirm(proof)
    #expect(agreement.confirmation.count == CodeExchange.confirmationBytes)
    var transcript = Array("kith-pair-1".utf8) + [1]
    for part in [offer.prefix(16), run.hello.dropFirst(), offer.dropFirst(16), proof[...]] {
      transcript += part
    }
    #expect(agreement.prologue == transcript + agreement.confirmation)
  }

  @Test func theInviterProvesNothingToAWrongCode() {
    for seed in 1...8 as ClosedRange<UInt64> {
      #expect(throws: CodeExchangeError.wrongProof) {
        try agrees(seed: seed, sameCode: false)
      }
    }
  }

  @Test func oneOfferTakesOneGuess() throws {
    var run = Run(seed: 1)
    let offer = try run.inviter.offer(to: run.hello, entropy: &run.entropy)
    var wrong = try run.joiner.prove(to: offer, entropy: &run.entropy)
    wrong[63] ^= 1
    var errors: [CodeExchangeError] = []
    for _ in 0..<2 {
      do throws(CodeExchangeError) { _ = try run.inviter.confirm(wrong) } catch {
        errors.append(error)
      }
    }
    do throws(CodeExchangeError) {
      _ = try run.inviter.offer(to: run.hello, entropy: &run.entropy)
    } catch {
      errors.append(error)
    }
    #expect(errors == [.wrongProof, .malformed, .malformed])
  }

  /// Elements that would make the key known to all, and bytes that are none.
  @Test func badSharesAreRefusedOnBothSides() {
    for bad in [[UInt8](repeating: 0, count: 32), [UInt8](repeating: 0xff, count: 32)] {
      #expect(throws: CodeExchangeError.malformed) {
        try agrees(seed: 1) { index, message in
          index == 1 ? message.prefix(16) + bad : message
        }
      }
      #expect(throws: CodeExchangeError.wrongProof) {
        try agrees(seed: 1) { index, message in
          index == 2 ? bad + message.suffix(32) : message
        }
      }
    }
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func alteredMessagesAgreeOnNothing(seed: UInt64) {
    var random = SeededEntropy(seed: seed)
    for _ in 0..<150 {
      let (altered, kind) = (Int(random.next() % 4), random.next() % 3)
      let draws = (random.next(), random.next())
      let agreed = try? agrees(seed: seed) { index, message in
        guard index == altered else { return message }
        var bytes = message
        switch kind {
        case 0: bytes[Int(draws.0 % UInt64(bytes.count))] ^= UInt8(1 << (draws.1 % 8))
        case 1: bytes = Array(bytes.prefix(Int(draws.0 % UInt64(bytes.count))))
        default: bytes += [UInt8(truncatingIfNeeded: draws.0)]
        }
        return bytes
      }
      #expect(agreed != true, "seed \(seed), message \(altered), kind \(kind), draws \(draws)")
    }
  }

  /// The worked example of Docs/Protocol/pairing.md, which Protocol-examples.py computes without any
  /// of this code.
  @Test func theWorkedExampleOfTheProtocol() throws {
    struct Repeated: Entropy {
      var all: [UInt8]
      mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        buffer.initializeMemory(as: UInt8.self, repeating: all.removeFirst())
      }
    }
    func hex(_ bytes: some Sequence<UInt8>) -> String {
      bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    // Of each side 16 bytes, and 64 that its scalar is made of.
    var (inviters, joiners) = (Repeated(all: [0x0f, 0x0d]), Repeated(all: [0x10, 0x0e]))
    let code = try PairingCode(text: "4071-3352")
    var inviter = CodeInviter(code: code)
    var joiner = CodeJoiner(code: code, entropy: &joiners)
    #expect(hex(joiner.hello) == "0110101010101010101010101010101010")
    let offer = try inviter.offer(to: joiner.hello, entropy: &inviters)
    #expect(
      hex(offer)
        == "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0ff81357f9507031fd438c19820a87c07d4cd5809b3c33a34e"
        + "90f82ab243930e6e")
    let proof = try joiner.prove(to: offer, entropy: &joiners)
    #expect(
      hex(proof)
        == "2a6744b5a760216d4c6d6c1fb6a67e1d01bd748199c1294afb7db0aa95700c02a7714a9669d6c55a"
        + "368a7d38eb9808086becffc9bdb792a9c94efecd5bdaaa08")
    let agreement = try inviter.confirm(proof)
    #expect(
      hex(agreement.confirmation)
        == "a50b46a24d0f36b685fafcd63e7af15d0bc758b9a1e4af594545257b9c2ece19")
    #expect(
      agreement.presharedKey.withUnsafeBytes { hex($0) }
        == "caffbc34c6f3996de7a949bc8a60f14198b9fa7980c2ea9e672dc9feda58634c")
    let transcript = Array("kith-pair-1".utf8) + [1] + offer.prefix(16) + joiner.hello.dropFirst()
    #expect(
      agreement.prologue
        == transcript + offer.dropFirst(16) + proof + agreement.confirmation)
  }

  @Test func announcementsRoundTripAndOthersAreRefused() throws {
    var random = SeededEntropy(seed: 1)
    let announcement = InvitationAnnouncement(id: random.draw(), port: 4115)
    let bytes = announcement.encoded()
    #expect(bytes.count == InvitationAnnouncement.byteCount)
    #expect(InvitationAnnouncement(decoding: bytes) == announcement)
    for index in Array(0..<12) + [30, 31] {
      var wrong = bytes
      wrong[index] ^= 1
      #expect(InvitationAnnouncement(decoding: wrong) == nil)
    }
    var noPort = bytes
    (noPort[28], noPort[29]) = (0, 0)
    #expect(InvitationAnnouncement(decoding: noPort) == nil)
    #expect(InvitationAnnouncement(decoding: bytes + [0]) == nil)
    #expect(InvitationAnnouncement(decoding: Array(bytes.dropLast())) == nil)
  }
}

struct PairingCodeTests {
  @Test func codesRoundTripAndAreReadForgivingly() throws {
    var entropy = SeededEntropy(seed: 1)
    for _ in 0..<200 {
      let text = PairingCode(random: &entropy).text
      #expect(text.wholeMatch(of: /[0-9]{4}-[0-9]{4}/) != nil)
      #expect(try PairingCode(text: text).text == text)
      let digits = text.filter { $0 != "-" }
      #expect(try PairingCode(text: " " + digits.map { "\($0) " }.joined() + "\n").text == text)
      let letters = text.replacing("0", with: "o").replacing("1", with: "L")
        .replacing("-", with: "–")
      #expect(try PairingCode(text: letters).text == text)
      let arabic = String(
        digits.map { Character(Unicode.Scalar(0x660 + UInt32($0.wholeNumberValue ?? 0))!) })
      #expect(try PairingCode(text: arabic).text == text)
    }
  }

  @Test func everyWrongDigitAndEverySwapIsTold() throws {
    var entropy = SeededEntropy(seed: 2)
    for _ in 0..<50 {
      let digits = Array(PairingCode(random: &entropy).text.filter { $0 != "-" })
      for index in digits.indices {
        for wrong in "0123456789" where wrong != digits[index] {
          var typed = digits
          typed[index] = wrong
          #expect(throws: PairingCodeError.checkDigit) { try PairingCode(text: String(typed)) }
        }
        guard index > 0, digits[index] != digits[index - 1] else { continue }
        var typed = digits
        typed.swapAt(index, index - 1)
        #expect(throws: PairingCodeError.checkDigit) { try PairingCode(text: String(typed)) }
      }
    }
  }

  @Test func whatIsNoCodeIsRefused() {
    #expect(throws: PairingCodeError.wrongLength(0)) { try PairingCode(text: "") }
    #expect(throws: PairingCodeError.wrongLength(7)) { try PairingCode(text: "123 4567") }
    #expect(throws: PairingCodeError.invalidCharacter("x")) { try PairingCode(text: "1234x567") }
    #expect(throws: PairingCodeError.invalidCharacter("½")) { try PairingCode(text: "½2345678") }
    #expect(throws: PairingCodeError.self) {
      try PairingCode(text: String(repeating: "1", count: 1 << 20))
    }
  }

  @Test func digitsAreDrawnAlike() {
    var entropy = SeededEntropy(seed: 3)
    var counts = [[Int]](repeating: [Int](repeating: 0, count: 10), count: PairingCode.digits)
    for _ in 0..<4_000 {
      let text = PairingCode(random: &entropy).text.filter { $0 != "-" }
      for (place, digit) in text.enumerated() { counts[place][digit.wholeNumberValue ?? 0] += 1 }
    }
    for place in counts { #expect(place.allSatisfy { (300...500).contains($0) }, "\(place)") }
  }
}
