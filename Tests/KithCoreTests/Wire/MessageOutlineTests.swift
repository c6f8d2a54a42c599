import KithCrypto
import Testing

@testable import KithCore

/// Messages that are refused before they are decoded, by counting alone.
@Suite struct MessageOutlineTests {
  private func varint(_ value: Int) -> [UInt8] {
    var rest = value
    var bytes: [UInt8] = []
    while rest > 0x7f {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// A field that holds bytes.
  private func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(bytes.count) + bytes
  }

  private func fields(_ number: Int, _ bytes: [UInt8], times: Int) -> [UInt8] {
    let one = field(number, bytes)
    return (0..<times).flatMap { _ in one }
  }

  private func isPermitted(_ bytes: [UInt8]) -> Bool { MessageOutline.session.permits(bytes) }

  @Test func `a message of very many elements was built before they were counted`() {
    let vector = [UInt8](repeating: 0, count: 34)
    let many = Limits.elementsPerMessage
    for (body, number, limit) in [
      (1, 1, Limits.recordsPerMessage), (2, 5, Limits.stores),
      (3, 3, Limits.changeSetsPerMessage), (4, 1, MembershipLimits.records),
    ] {
      #expect(isPermitted(field(body, fields(number, [], times: limit))))
      #expect(!isPermitted(field(body, fields(number, [], times: limit + 1))))
    }
    #expect(isPermitted(field(3, fields(4, vector, times: Limits.chainsPerStore))))
    #expect(!isPermitted(field(3, fields(4, vector, times: Limits.chainsPerStore + 1))))
    #expect(!isPermitted(field(3, field(4, []))), "a cover without a device")
    #expect(isPermitted(field(2, field(5, fields(2, vector, times: many)))))
    #expect(!isPermitted(field(2, field(5, fields(2, vector, times: many + 1)))))
    #expect(!isPermitted(field(2, field(5, field(2, [])))), "a vector's entry without a device")
    #expect(isPermitted(field(3, field(3, fields(3, [], times: many)))))
    #expect(!isPermitted(field(3, field(3, fields(3, [], times: many + 1)))))
    #expect(isPermitted(field(4, field(1, fields(2, [], times: many)))))
    #expect(!isPermitted(field(4, field(1, fields(2, [], times: many + 1)))))
  }

  @Test func `elements under several parents are counted together`() {
    // Bodies that come twice are joined, so their elements are, too.
    let half = field(2, fields(5, [], times: Limits.stores / 2 + 1))
    #expect(isPermitted(half))
    #expect(!isPermitted(half + half))
    let entries = field(3, fields(3, [], times: Limits.elementsPerMessage / 2 + 1))
    #expect(isPermitted(field(3, entries)))
    #expect(!isPermitted(field(3, entries + entries)))
  }

  @Test func `bytes that are no fields are refused, and unknown fields passed over`() {
    #expect(isPermitted([]))
    #expect(isPermitted(field(99, [0xff, 0xff])))
    #expect(isPermitted(varint(99 << 3) + [0x80, 0x01]))
    #expect(isPermitted(varint(99 << 3 | 1) + [UInt8](repeating: 0xff, count: 8)))
    #expect(isPermitted(varint(99 << 3 | 5) + [UInt8](repeating: 0xff, count: 4)))
    // In a longer form than need be, a tag is the same tag.
    let long = [0x92, 0x80, 0x00] + varint(258 * 2) + fields(5, [], times: 258)
    #expect(!isPermitted(long))
    for bytes: [UInt8] in [
      [0x80], [0x00, 0x00], [0x08], [0x0a, 0x01], [0x09, 1, 2, 3, 4, 5, 6, 7], [0x0d, 1, 2, 3],
      [0x0e], [0x0f], [0x12, 0x02, 0x2a, 0x01],
      [0x0a] + [UInt8](repeating: 0xff, count: 9) + [0x01],
      [UInt8](repeating: 0xff, count: 11),
    ] {
      #expect(!isPermitted(bytes), "\(bytes)")
    }
  }

  @Test func `no bytes trap`() {
    var random = SeededEntropy(seed: 210)
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 0..<24, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      _ = isPermitted(field(Int.random(in: 1...4, using: &random), bytes))
      _ = isPermitted(bytes)
    }
  }

  @Test func `a header of very many digests is no header`() throws {
    let world = try TestWorld(devices: 1, seed: 211)
    let header = try world.seal([], by: 0, sequence: 1).stored.header
    let digest = [UInt8](repeating: 1, count: 32)
    let most = header + fields(9, digest, times: Limits.entriesPerChangeSet)
    #expect(throws: Never.self) { try ChangeSetHeader(decoding: most) }
    let tooMany = most + field(9, digest)
    #expect(throws: ChangeSetHeader.Problem.malformed) { try ChangeSetHeader(decoding: tooMany) }
  }
}
