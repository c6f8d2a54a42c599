import Foundation
import KithCrypto
import Testing

private struct Refusal: Error {}

private final class Holder: Sendable {
  let seed: SigningSeed
  init(_ seed: consuming SigningSeed) { self.seed = seed }
}

@Suite("Secret memory and entropy")
struct MemoryTests {
  @Test("The source of a secret is zeroed, also when it has the wrong length")
  func zeroing() {
    var source = [UInt8](1...40)
    let secret = SecretBytes(zeroing: &source)
    let matches = secret.withUnsafeBytes { Array($0) == Array(1...40) }
    #expect(matches)
    #expect(source == [UInt8](repeating: 0, count: 40))
    var short = [UInt8](1...31)
    let error = caught { () throws(CryptoError) in _ = try SigningSeed(zeroing: &short) }
    #expect(error == .wrongLength(expected: 32, actual: 31))
    #expect(short == [UInt8](repeating: 0, count: 31))
  }

  @Test("Writing to a secret ends the process")
  func writeProtection() async {
    await #expect(processExitsWith: .signal(SIGSEGV)) {
      let secret = SecretBytes(count: 100) { $0.initializeMemory(as: UInt8.self, repeating: 7) }
      secret.withUnsafeBytes { UnsafeMutableRawBufferPointer(mutating: $0)[50] = 8 }
    }
  }

  @Test("Reading one byte too far ends the process")
  func guardPage() async {
    await #expect(processExitsWith: .signal(SIGSEGV)) {
      let secret = SecretBytes(count: 100) { $0.initializeMemory(as: UInt8.self, repeating: 7) }
      let beyond = secret.withUnsafeBytes {
        $0.baseAddress?.load(fromByteOffset: 100, as: UInt8.self)
      }
      print(beyond ?? 0)
    }
  }

  @Test("A copy has the same bytes in memory of its own")
  func copies() {
    let secret = SecretBytes(count: 100) { $0.initializeMemory(as: UInt8.self, repeating: 7) }
    let copy = secret.copy()
    let (bytes, copied) = (
      secret.withUnsafeBytes { Array($0) }, copy.withUnsafeBytes { Array($0) }
    )
    let places = [
      secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) },
      copy.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) },
    ]
    #expect(copied == bytes)
    #expect(places[0] != places[1])
  }

  @Test("An initialiser that throws leaves nothing")
  func throwing() {
    let error = caught { () throws(Refusal) in
      _ = try SecretBytes(count: 8) { (_) throws(Refusal) in throw Refusal() }
    }
    #expect(error != nil)
    let empty = SecretBytes(count: 0) { _ in }
    #expect(empty.count == 0)
  }

  @Test("Classes hold keys, and share them among tasks")
  func holder() async {
    let holder = Holder(key(seedBytes))
    let expected = SigningKey(seed: holder.seed).publicKey
    await withTaskGroup(of: SigningPublicKey.self) { group in
      for _ in 0..<8 { group.addTask { SigningKey(seed: holder.seed).publicKey } }
      for await publicKey in group { #expect(publicKey == expected) }
    }
  }

  @Test("Constant-time equality is equality")
  func equality() {
    #expect(constantTimeEquals([1, 2], [1, 2]))
    #expect(constantTimeEquals([], []))
    #expect(!constantTimeEquals([1, 2], [1, 3]))
    #expect(!constantTimeEquals([1, 2], [1, 2, 3]))
  }

  @Test("A seed gives the same bytes each time, and other seeds others")
  func seeded() {
    var first = SeededEntropy(seed: 42)
    var second = SeededEntropy(seed: 42)
    var other = SeededEntropy(seed: 43)
    let bytes = first.bytes(48)
    #expect(bytes == second.bytes(48))
    #expect(bytes != other.bytes(48))
    #expect(first.next() == second.next())
    #expect(first.bytes(48) != bytes)
    #expect(first.bytes(0) == [])
    let left = SigningKey(seed: SigningSeed(random: &first)).publicKey
    _ = second.bytes(48)
    _ = second.bytes(0)
    let right = SigningKey(seed: SigningSeed(random: &second)).publicKey
    #expect(left == right)
    // Pinned (made with Python's hashlib and cryptography), so that a recorded seed of the
    // simulator keeps its meaning.
    var pinned = SeededEntropy(seed: 0)
    #expect(pinned.bytes(8) == hex("e4396463ea1d616a"))
    #expect(pinned.bytes(8) == hex("658960f18e9c1a44"))
  }

  @Test("The system's source does not repeat")
  func system() {
    var random = SystemRandom()
    #expect(Set((0..<64).map { _ in random.bytes(16) }).count == 64)
    #expect(random.bytes(0) == [])
    #expect(random.next() != random.next())
  }
}
