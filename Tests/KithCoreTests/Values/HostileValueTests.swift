import Foundation
import KithTestSupport
import Testing

@testable import KithCore

@Suite("Hostile encoded values")
struct HostileValueTests {
  static let refused: [(String, [UInt8], ValueError)] = [
    ("nothing", [], .malformed),
    ("tag alone", [0x08], .malformed),
    ("bool of 2", [0x08, 2], .notCanonical),
    ("longer bool than needed", [0x08, 0x81, 0], .notCanonical),
    ("longer integer than needed", [0x10, 0x80, 0], .notCanonical),
    ("more than 64 bits", [0x10] + Array(repeating: 0xFF, count: 9) + [0x02], .malformed),
    ("an endless integer", [0x10] + Array(repeating: 0x80, count: 40), .malformed),
    ("half a double", [0x19, 0, 0, 0, 0], .malformed),
    ("text that is not UTF-8", [0x22, 2, 0xC3, 0x28], .malformed),
    ("a surrogate", [0x22, 3, 0xED, 0xA0, 0x80], .malformed),
    ("longer text than there is", [0x22, 3, 0x61, 0x61], .malformed),
    ("2^63 bytes of data", [0x32] + Array(repeating: 0x80, count: 9) + [1], .malformed),
    ("wrong wire type", [0x09, 0, 0, 0, 0, 0, 0, 0, 0], .malformed),
    ("field 0", [0x02, 0], .malformed),
    ("unknown field", [0x48, 0], .notCanonical),
    ("unknown field after the kind", [0x08, 1, 0x48, 0], .notCanonical),
    ("two kinds", [0x08, 1, 0x08, 1], .notCanonical),
    ("tag longer than needed", [0x88, 0x00, 0x01], .notCanonical),
    ("element without a kind", [0x3A, 2, 0x0A, 0], .malformed),
    ("element beyond its array", [0x3A, 2, 0x0A, 2, 0x08, 1], .malformed),
    ("member without a value", [0x42, 5, 0x0A, 3, 0x0A, 1, 0x61], .malformed),
    ("empty member", [0x42, 2, 0x0A, 0], .malformed),
    ("empty key spelled out", [0x42, 8, 0x0A, 6, 0x0A, 0, 0x12, 2, 0x08, 1], .notCanonical),
    ("value before key", [0x42, 9, 0x0A, 7, 0x12, 2, 0x08, 1, 0x0A, 1, 0x61], .notCanonical),
    ("members out of order", dictionary([[0x62], [0x61]]), .notCanonical),
    ("the same key twice", dictionary([[0x61], [0x61]]), .notCanonical),
    (
      "canonically equivalent keys", dictionary([[0x65, 0xCC, 0x81], [0xC3, 0xA9]]), .malformed
    ),
  ]

  /// A dictionary message with these keys, each with the value true.
  private static func dictionary(_ keys: [[UInt8]]) -> [UInt8] {
    var members: [UInt8] = []
    for key in keys {
      members += [0x0A, UInt8(key.count + 6), 0x0A, UInt8(key.count)]
      members += key
      members += [0x12, 2, 0x08, 1]
    }
    return [0x42, UInt8(members.count)] + members
  }

  @Test(arguments: refused)
  func `refused with its reason`(name: String, bytes: [UInt8], error: ValueError) {
    #expect(throws: error, Comment(rawValue: name)) { try EncodedValue(checking: bytes) }
  }

  @Test func `random bytes are an encoding or an error`() {
    let seed = testSeed("random bytes")
    var random = SeededGenerator(state: seed)
    let likely: [UInt8] = [0x08, 0x10, 0x19, 0x22, 0x29, 0x32, 0x3A, 0x42, 0x0A, 0x12, 0, 1, 2, 4]
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<40, using: &random)
      let bytes = (0..<count).map { _ in
        Bool.random(using: &random)
          ? likely.randomElement(using: &random) ?? 0 : UInt8.random(in: 0...255, using: &random)
      }
      expectCanonicalOrError(bytes, seed: seed)
    }
  }

  @Test func `mutated encodings are an encoding or an error`() throws {
    let seed = testSeed("mutated encodings")
    var random = SeededGenerator(state: seed)
    for _ in 0..<2_000 {
      var bytes = try EncodedValue(.random(depth: 4, using: &random)).bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: bytes.removeSubrange(index..<min(bytes.count, index + 3))
        }
        if bytes.isEmpty { bytes = [0x3A] }
      }
      expectCanonicalOrError(bytes, seed: seed)
    }
  }

  /// Bytes that are accepted decode to a value that encodes to the same bytes.
  private func expectCanonicalOrError(_ bytes: [UInt8], seed: UInt64) {
    guard let accepted = try? EncodedValue(checking: bytes) else { return }
    let again = try? EncodedValue(accepted.decoded())
    #expect(again?.bytes == bytes, "seed \(seed)")
  }
}
