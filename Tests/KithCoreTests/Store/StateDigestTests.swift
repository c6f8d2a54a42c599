import KithCrypto
import Testing

@testable import KithCore

/// The input of a state's digest (`Docs/Protocol.md`, "State digest").
@Suite struct StateDigestTests {
  private let device = DeviceID { $0.initializeMemory(as: UInt8.self, repeating: 1) }

  /// The digest of a store that holds these writes, `nil` for removals, each written without
  /// knowing any other.
  private func digest(_ writes: [(key: String, clock: UInt64, number: Int64?)]) throws -> Digest256
  {
    var store = StoreReplica(
      identifier: TestWorld.store, policy: .standard)
    for write in writes {
      let stamp = Stamp(clock: HybridTime(rawValue: write.clock), device: device)
      let entry = Entry(
        key: Key(write.key), stamp: stamp,
        content: try write.number.map { .value(try EncodedValue(.integer($0))) } ?? .removed,
        claim: Claim(clock: stamp.clock, device: device, group: 0))
      let digest = Blake2b.digest256(entry.plaintext())
      _ = store.merge(KeptEntry(entry: entry, digest: digest, home: nil))
    }
    return store.digest()
  }

  @Test func `removals that are the newest of their key do not count, for they are forgotten`()
    throws
  {
    let one = try digest([("a", 1, 7)])
    #expect(try digest([("a", 1, 7), ("b", 2, nil)]) == one)
    #expect(try digest([("b", 1, 3), ("a", 1, 7), ("b", 2, nil)]) == one)
    #expect(try digest([("b", 2, nil)]) == (try digest([])))
  }

  @Test func `every other kept entry counts, also a runner-up that is a removal`() throws {
    let one = try digest([("a", 3, 7)])
    #expect(try digest([("a", 3, 7), ("b", 1, 7)]) != one)
    #expect(try digest([("a", 3, 7), ("a", 2, 6)]) != one)
    #expect(try digest([("a", 3, 7), ("a", 2, nil)]) != one)
    #expect(
      try digest([("a", 2, nil), ("a", 3, 7)]) == (try digest([("a", 3, 7), ("a", 2, nil)])))
    #expect(try digest([("a", 3, 8)]) != one)
  }
}
