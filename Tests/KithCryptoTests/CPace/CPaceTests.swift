import Foundation
import Testing

@testable import KithCrypto

/// A published run of CPace, all of its values in hexadecimal.
struct CPaceVector: Decodable {
  struct Values: Decodable {
    let PRS, CI, sid, g, ya, ADa, Ya, yb, ADb, Yb, K, ISK_IR, ISK_SY: String
  }

  let hex: Values

  /// The vector of the file that `KITH_CPACE_VECTORS` names, or the repository's copy of the
  /// draft's.
  static func read() throws -> Values {
    let own = try #require(Bundle.module.url(forResource: "Vectors/cpace", withExtension: "json"))
    let url =
      ProcessInfo.processInfo.environment["KITH_CPACE_VECTORS"]
      .map { URL(fileURLWithPath: $0) } ?? own
    return try JSONDecoder().decode(CPaceVector.self, from: Data(contentsOf: url)).hex
  }
}

@Suite("CPace")
struct CPaceTests {
  func secret(_ bytes: [UInt8]) -> SecretBytes {
    var bytes = bytes
    return SecretBytes(zeroing: &bytes)
  }

  func bytes(_ secret: borrowing SecretBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

  func bytes(_ key: borrowing CPaceKey) -> [UInt8] { key.withUnsafeBytes { Array($0) } }

  func side(
    _ scalar: [UInt8], password: [UInt8] = [1, 2], channel: [UInt8] = [], session: [UInt8] = [7]
  ) throws(CryptoError) -> CPace {
    try CPace(
      password: secret(password), channel: channel, session: session, scalar: key(scalar))
  }

  @Test func everyValueIsThePublishedOne() throws {
    let vector = try CPaceVector.read()
    let (password, channel, session) = (hex(vector.PRS), hex(vector.CI), hex(vector.sid))
    let generator = CPace.generator(
      password: secret(password), channel: channel, session: session)
    #expect(bytes(generator) == hex(vector.g))
    for setting in [CPaceSetting.initiator, .symmetric] {
      let a = try side(hex(vector.ya), password: password, channel: channel, session: session)
      let b = try side(hex(vector.yb), password: password, channel: channel, session: session)
      let (shareA, shareB) = (a.share, b.share)
      #expect(shareA.bytes == hex(vector.Ya))
      #expect(shareB.bytes == hex(vector.Yb))
      let pointA = try a.sharedPoint(with: shareB)
      let pointB = try b.sharedPoint(with: shareA)
      #expect(bytes(pointA) == hex(vector.K))
      #expect(bytes(pointB) == hex(vector.K))
      let isOrdered = setting == .initiator
      let keyA = try a.key(
        setting: setting, associated: hex(vector.ADa), remote: shareB,
        remoteAssociated: hex(vector.ADb))
      let keyB = try b.key(
        setting: isOrdered ? .responder : setting, associated: hex(vector.ADb), remote: shareA,
        remoteAssociated: hex(vector.ADa))
      #expect(bytes(keyA) == hex(isOrdered ? vector.ISK_IR : vector.ISK_SY))
      #expect(bytes(keyB) == hex(isOrdered ? vector.ISK_IR : vector.ISK_SY))
    }
  }

  /// The draft's own cases for the scalar multiplication that checks.
  @Test func elementsThatAreNoneAreRefused() throws {
    let scalar: CPaceScalar = key(
      hex("7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05"))
    let valid = hex("2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c")
    let product = try valid.withUnsafeBytes { bytes(try scalar.times($0)) }
    #expect(
      product == hex("7c13645fe790a468f62c39beb7388e541d8405d1ade69d1778c5fe3e7f6b600e"))
    let refused = [
      // The encoding of no element.
      "2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c",
      // The identity.
      "0000000000000000000000000000000000000000000000000000000000000000",
      // Negative, not canonical, and more than 255 bits.
      "0100000000000000000000000000000000000000000000000000000000000000",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a59c",
      "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ]
    for text in refused {
      let share = try CPaceShare(hex(text))
      let error = caught { () throws(CryptoError) in
        let side = try side(seedBytes)
        _ = try side.key(setting: .initiator, remote: share)
      }
      #expect(error == .invalidKey, "\(text)")
    }
  }

  @Test func aScalarOfZeroIsRefused() {
    let order = hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
    for scalar in [[UInt8](repeating: 0, count: 32), order] {
      let error = caught { () throws(CryptoError) in _ = try side(scalar) }
      #expect(error == .invalidKey)
    }
  }

  @Test func keysAgreeOnlyWhereAllIsTheSame() throws {
    typealias Facts = (password: [UInt8], channel: [UInt8], session: [UInt8], associated: [UInt8])
    let same: Facts = ([1, 2], [3], [4], [5])
    let others: [Facts] = [
      ([1, 3], [3], [4], [5]), ([1], [2, 3], [4], [5]), ([1, 2], [], [3, 4], [5]),
      ([1, 2], [3], [5], [5]), ([1, 2], [3], [4], [6]), ([1, 2], [3], [4], []),
    ]
    func agrees(_ facts: Facts) throws -> Bool {
      var entropy = SeededEntropy(seed: 4)
      let a = try CPace(
        password: secret(same.password), channel: same.channel, session: same.session,
        scalar: CPaceScalar(random: &entropy))
      let b = try CPace(
        password: secret(facts.password), channel: facts.channel, session: facts.session,
        scalar: CPaceScalar(random: &entropy))
      let (shareA, shareB) = (a.share, b.share)
      #expect(shareA != shareB)
      let keyA = try a.key(setting: .initiator, associated: same.associated, remote: shareB)
      let keyB = try b.key(
        setting: .responder, remote: shareA, remoteAssociated: facts.associated)
      let isSame = bytes(keyA) == bytes(keyB)
      let pskA: PresharedKey = keyA.derive([1])
      let pskB: PresharedKey = keyB.derive([1])
      #expect(pskA.isSame(as: pskB) == isSame)
      #expect((keyA.proof(of: [1]) == keyB.proof(of: [1])) == isSame)
      #expect(keyA.proof(of: [1]) != keyA.proof(of: [2]))
      return isSame
    }
    #expect(try agrees(same))
    for facts in others { #expect(try !agrees(facts), "\(facts)") }
  }

  @Test func lengthsAreLEB128() {
    #expect(CPaceText.length(0) == [0])
    #expect(CPaceText.length(127) == [127])
    #expect(CPaceText.length(128) == [0x80, 1])
    #expect(CPaceText.prefixed([UInt8](repeating: 1, count: 300)).prefix(2) == [0xac, 2])
    #expect(CPace.channel([1], [], [2, 3]) == [1, 1, 0, 2, 2, 3])
  }
}
