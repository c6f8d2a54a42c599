import KithCrypto
import Testing

@testable import KithCore

struct MembershipTextTests {
  @Test func recoveryTextIsForgiven() throws {
    let key = recoveryKey(1)
    let text = key.text
    #expect(text.split(separator: "-").map(\.count) == Array(repeating: 4, count: 14))
    #expect(try RecoveryKey(text: text).signingPublicKey == key.signingPublicKey)
    var sloppy = text.lowercased().replacing("-", with: "  ")
    sloppy = sloppy.replacing("1", with: "l").replacing("0", with: "o")
    #expect(try RecoveryKey(text: " " + sloppy + "\n").boxPublicKey == key.boxPublicKey)
    #expect(try RecoveryKey(text: text.replacing("1", with: "I")).text == text)
  }

  @Test func recoveryTextErrorsSayWhatIsWrong() throws {
    let text = recoveryKey(1).text
    #expect(throws: RecoveryKeyError.wrongLength(characters: 55, expected: 56)) {
      try RecoveryKey(text: String(text.dropLast()))
    }
    let characters = Array(text)
    for index in characters.indices where characters[index] != "-" {
      var wrong = characters
      wrong[index] = wrong[index] == "7" ? "8" : "7"
      #expect(throws: RecoveryKeyError.checksumMismatch) {
        try RecoveryKey(text: String(wrong))
      }
    }
    #expect(throws: RecoveryKeyError.invalidCharacter("U", group: 2)) {
      try RecoveryKey(text: String(text.prefix(5)) + "U" + text.dropFirst(6))
    }
  }

  @Test func base32OfEveryLength() {
    var entropy = SeededEntropy(seed: 3)
    for count in 0..<40 {
      let bytes = entropy.bytes(count)
      #expect(Crockford.decode(Crockford.encode(bytes)) == bytes)
    }
    #expect(Crockford.decode("01") == nil)
  }

  @Test func fingerprints() {
    let text = Fingerprint(of: deviceKeys(1).id).description
    #expect(text.split(separator: "-").map(\.count) == [4, 4, 4, 4])
    #expect(text != Fingerprint(of: deviceKeys(2).id).description)
  }

  @Test func invitationsRoundTrip() throws {
    var entropy = SeededEntropy(seed: 4)
    let addresses = ["192.0.2.1", "2001:db8::1", "laptop.local"]
    let token = try InvitationToken(
      secret: InvitationSecret(random: &entropy), port: 4114, addresses: addresses)
    let text = token.text
    #expect(text.hasPrefix("kith1-"))
    let read = try InvitationToken(text: " " + text.uppercased() + "\n")
    #expect(read.port == 4114)
    #expect(read.addresses == addresses)
    let psk = token.presharedKey()
    let isSame = read.presharedKey().isSame(as: psk)
    #expect(isSame)
    #expect(throws: InvitationTokenError.notAnInvitation) {
      try InvitationToken(text: "hello")
    }
    #expect(throws: InvitationTokenError.unsupportedVersion) {
      try InvitationToken(text: "kith2-abc")
    }
    let long = String(repeating: "0", count: 9_000)
    #expect(throws: InvitationTokenError.tooLong) { try InvitationToken(text: long) }
    let characters = Array(text)
    for index in 6..<characters.count - 1 {
      var wrong = characters
      wrong[index] = wrong[index] == "7" ? "8" : "7"
      #expect(throws: InvitationTokenError.checksumMismatch) {
        try InvitationToken(text: String(wrong))
      }
    }
    #expect(throws: InvitationTokenError.malformed) {
      try InvitationToken(
        secret: InvitationSecret(random: &entropy), port: 1,
        addresses: Array(repeating: "a", count: 9))
    }
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func hostileBytesNeverTrap(seed: UInt64) throws {
    var random = SeededEntropy(seed: seed)
    let fixture = try Fixture()
    let samples =
      fixture.records.map(\.encoded) + [
        JoinReply(isAccepted: true, records: fixture.records).encoded(),
        Invitation(account: fixture.account, device: fixture.creator.id, name: "x").encoded(),
      ]
    var roster = Roster(account: fixture.account)
    for round in 0..<400 {
      var bytes = samples[round % samples.count]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(
          in: 0...255, using: &random)
      }
      if round.isMultiple(of: 3) {
        bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
      }
      if let record = try? Record(decoding: bytes) { _ = roster.learn(all: [record]) }
      _ = JoinReply(decoding: bytes)
      _ = Invitation(decoding: bytes)
      _ = JoinRequestMessage(decoding: bytes)
      _ = JoinConfirm(decoding: bytes)
      _ = InvitationAnnouncement(decoding: bytes)
      let text = String(decoding: bytes, as: UTF8.self)
      _ = try? RecoveryKey(text: text)
      _ = try? InvitationToken(text: "kith1-" + text)
      _ = try? PairingCode(text: text)
    }
    #expect(roster.sortedMembers.count <= 1, "seed \(seed)")
    #expect(throws: RecordError.self) {
      try Record(decoding: Array(repeating: 0, count: 17 << 10))
    }
  }

  @Test func equalRecordsHaveEqualBytes() throws {
    let fixture = try Fixture()
    let genesis = fixture.records[0]
    let turned = genesis.with(signatures: genesis.signatures.reversed())
    #expect(turned.encoded == genesis.encoded)
    #expect(try Record(decoding: genesis.encoded) == genesis)
    #expect(genesis.id == fixture.account.digest)
  }
}
