import KithCrypto
import KithTestSupport
import Testing

@testable import KithCore

private let device = [UInt8](repeating: 7, count: 32)

private func varint(_ value: Int) -> [UInt8] {
  value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7f) | 0x80] + varint(value >> 7)
}

private func data(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
  varint(number << 3 | 2) + varint(bytes.count) + bytes
}

private func clock(_ value: UInt8) -> [UInt8] { [0x09, value, 0, 0, 0, 0, 0, 0, 0] }

private let key: [UInt8] = data(1, Array("key".utf8))
private let stamp: [UInt8] = data(2, clock(9) + data(2, device))
private let value: [UInt8] = data(3, [0x08, 1])
private let claim: [UInt8] = data(5, clock(8) + data(2, device) + [0x18, 3])
private let replaced: [UInt8] = data(6, clock(4) + data(2, device))
private let fallback: [UInt8] = data(
  7, data(1, [0x08, 0]) + data(2, clock(2) + data(2, device)))

private let whole: [UInt8] = key + stamp + value + claim + replaced + fallback

/// An entry's plaintext is its canonical encoding: nothing else is an entry.
@Suite struct EntryPlaintextTests {
  static let canonical: [(String, [UInt8])] = [
    ("whole", whole),
    ("least", key + stamp + value + claim),
    ("a removal", key + stamp + [0x20, 1] + claim + replaced),
    ("a text", key + stamp + data(3, data(4, Array("caf\u{e9}".utf8))) + claim),
    ("an empty text", key + stamp + data(3, [0x22, 0]) + claim),
    ("clocks of zero", key + data(2, data(2, device)) + value + data(5, data(2, device))),
  ]

  /// Each has an entry's content in other bytes, or content that no entry has.
  static let refused: [(String, [UInt8])] = [
    ("an unknown field behind", whole + [0x48, 1]),
    ("an unknown field before", [0x48, 1] + whole),
    ("an unknown group", whole + [0x4b, 0x4c]),
    (
      "an unknown field in a stamp",
      key + data(2, clock(9) + data(2, device) + [0x18, 1]) + value + claim
    ),
    ("an unknown field in a claim", key + stamp + value + data(5, data(2, device) + [0x20, 1])),
    ("stamp before key", stamp + key + value + claim),
    ("claim before value", key + stamp + claim + value),
    ("device before clock", key + data(2, data(2, device) + clock(9)) + value + claim),
    ("key twice", key + key + stamp + value + claim),
    ("stamp in two pieces", key + data(2, clock(9)) + data(2, data(2, device)) + value + claim),
    ("removed, then a value", key + stamp + [0x20, 1] + value + claim),
    ("a value, then removed", key + stamp + value + [0x20, 1] + claim),
    ("removed of 2", key + stamp + [0x20, 2] + claim),
    ("removed, longer than needed", key + stamp + [0x20, 0x81, 0] + claim),
    ("not removed", key + stamp + [0x20, 0] + claim),
    ("a clock of zero that is there", key + data(2, clock(0) + data(2, device)) + value + claim),
    ("a group of zero that is there", key + stamp + value + data(5, data(2, device) + [0x18, 0])),
    (
      "a group longer than needed",
      key + stamp + value + data(5, data(2, device) + [0x18, 0x83, 0])
    ),
    (
      "a group of more than 32 bits",
      key + stamp + value + data(5, data(2, device) + [0x18, 0x83, 0x80, 0x80, 0x80, 0x10])
    ),
    ("a tag longer than needed", [0x8a, 0] + key.dropFirst() + stamp + value + claim),
    ("a length longer than needed", [0x0a, 0x83, 0] + key.dropFirst(2) + stamp + value + claim),
    ("a value that is not canonical", key + stamp + data(3, [0x08, 0x81, 0]) + claim),
    ("a text that is not UTF-8", key + stamp + data(3, [0x22, 2, 0xc3, 0x28]) + claim),
    ("a text of a surrogate", key + stamp + data(3, [0x22, 3, 0xed, 0xa0, 0x80]) + claim),
    ("a text that ends too early", key + stamp + data(3, [0x22, 2, 0x61]) + claim),
    ("a text's length longer than needed", key + stamp + data(3, [0x22, 0x81, 0, 0x61]) + claim),
    ("a text, then another", key + stamp + data(3, [0x22, 1, 0x61, 0x22, 1, 0x61]) + claim),
    ("an empty key", [0x0a, 0] + stamp + value + claim),
    ("no key", stamp + value + claim),
    ("a key that is not UTF-8", data(1, [0xc3, 0x28]) + stamp + value + claim),
    ("no stamp", key + value + claim),
    ("no content", key + stamp + claim),
    ("no claim", key + stamp + value),
    ("a device of 31 bytes", key + data(2, data(2, Array(device.dropLast()))) + value + claim),
    ("an empty replaced stamp", key + stamp + value + claim + data(6, [])),
    ("a fallback without a claim", key + stamp + value + claim + data(7, data(1, [0x08, 0]))),
    ("nothing", []),
  ]

  @Test(arguments: canonical)
  func `read, and encoded again as it came`(name: String, bytes: [UInt8]) throws {
    let entry = try #require(Entry(plaintext: bytes), Comment(rawValue: name))
    #expect(entry.plaintext() == bytes, Comment(rawValue: name))
  }

  @Test(arguments: refused)
  func `is no entry`(name: String, bytes: [UInt8]) {
    #expect(Entry(plaintext: bytes) == nil, Comment(rawValue: name))
  }

  @Test func `an entry read from altered bytes encodes to those bytes`() throws {
    let seed = testSeed("altered entries")
    var random = SeededGenerator(state: seed)
    let pieces = [
      key, stamp, value, [0x20, 1], claim, replaced, fallback,
      [0x48, 1], [0x18, 0], clock(0), [],
    ]
    var read = 0
    for _ in 0..<10_000 {
      var bytes: [UInt8]
      if Bool.random(using: &random) {
        bytes = try #require(Self.canonical.randomElement(using: &random)).1
      } else {
        bytes = (0..<6).flatMap { _ in pieces.randomElement(using: &random) ?? [] }
      }
      alter(&bytes, using: &random)
      guard let entry = Entry(plaintext: bytes) else { continue }
      read += 1
      #expect(entry.plaintext() == bytes, "seed \(seed)")
    }
    // Two in five are canonical encodings with a few bits of a clock or a device changed.
    #expect(read > 1_000, "seed \(seed)")
  }

  @Test func `an altered text is a value of an entry if it is canonical`() throws {
    let seed = testSeed("altered texts")
    var random = SeededGenerator(state: seed)
    var refused = 0
    for _ in 0..<10_000 {
      var bytes = try EncodedValue(.string("a\u{e9}\u{20ac}\u{1f600}")).bytes
      alter(&bytes, using: &random)
      let value = try? EncodedValue(checking: bytes)
      let entry = Entry(plaintext: key + stamp + data(3, bytes) + claim)
      #expect(entry?.value == value, "seed \(seed)")
      if value == nil { refused += 1 }
    }
    #expect(refused > 1_000 && refused < 9_000, "seed \(seed)")
  }

  private func alter(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
    for _ in 0..<Int.random(in: 0...2, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
      default: bytes.remove(at: index)
      }
    }
  }
}
