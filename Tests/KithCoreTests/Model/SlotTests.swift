import KithCrypto
import Testing

@testable import KithCore

/// The kept entries of a key, and the order in which they supersede each other (`Docs/Protocol.md`,
/// "Merging").
@Suite struct SlotTests {
  /// Two devices; the first has the smaller id.
  private static let devices = (0...1).map { number in
    DeviceID { $0.initializeMemory(as: UInt8.self, repeating: UInt8(number)) }
  }

  private func stamp(_ clock: UInt64, _ device: Int = 0) -> Stamp {
    Stamp(clock: HybridTime(rawValue: clock), device: Self.devices[device])
  }

  /// An entry; its content is a number, or nil for a removal.
  private func kept(_ number: Int64?, _ stamp: Stamp, replaced: Stamp? = nil) throws -> KeptEntry {
    let entry = Entry(
      key: "k", stamp: stamp,
      content: try number.map { .value(try EncodedValue(.integer($0))) } ?? .removed,
      claim: Claim(clock: stamp.clock, device: stamp.device, group: 0), replaced: replaced)
    return KeptEntry(entry: entry, digest: Blake2b.digest256(entry.plaintext()), location: nil)
  }

  /// The slot of two entries, which must be the same in either order of arrival.
  private func merged(_ left: KeptEntry, _ right: KeptEntry) -> Slot {
    var slot = Slot(left)
    _ = slot.merge(right)
    var other = Slot(right)
    _ = other.merge(left)
    #expect(slot.kept.map(\.digest) == other.kept.map(\.digest), "the order of arrival counts")
    return slot
  }

  /// Makes a pair of entries of many numbers, so that either has the larger digest now and then,
  /// and expects that the second is newer each time.
  private func expectSecondNewer(
    _ comment: Comment, _ make: (Int64) throws -> (KeptEntry, KeptEntry)
  ) throws {
    var isLarger = Set<Bool>()
    for number: Int64 in 0..<16 {
      let (first, second) = try make(number)
      isLarger.insert(first.digest < second.digest)
      #expect(merged(first, second).newest.digest == second.digest, comment)
    }
    #expect(isLarger.count == 2, "\(comment): the digests say the same")
  }

  @Test func `of equal clocks the larger device id is newer, whatever the digests`() throws {
    try expectSecondNewer("device id") { number in
      (try kept(number, stamp(5, 0)), try kept(number + 1, stamp(5, 1)))
    }
  }

  @Test func `of equal stamps a removal wins, whatever the digests`() throws {
    try expectSecondNewer("removal") { number in
      // The removal knew less, which does not count against it.
      (try kept(number, stamp(5), replaced: stamp(4)), try kept(nil, stamp(5)))
    }
  }

  /// A draft that is laid is shown, so publishing it must make it the newest entry.
  @Test(arguments: [nil, 1] as [Int64?], [4, 5, 6] as [UInt64])
  func `a draft is laid only if it will be the newest`(published: Int64?, clock: UInt64) throws {
    for replaced in [nil, stamp(3), stamp(5)] {
      for number in [nil, 2, 3] as [Int64?] {
        var state = StoreState(policy: .standard)
        _ = state.merge(try kept(published, stamp(5), replaced: replaced))
        _ = state.refresh(["k"])
        let operation = KithCore.Operation(
          key: "k", value: try number.map { try EncodedValue(.integer($0)) })
        let isLaid = state.isNewest(
          operation, writtenAt: stamp(clock).clock, by: Self.devices[0])
        let entry = try kept(number, stamp(clock), replaced: stamp(5))
        let slot = merged(try kept(published, stamp(5), replaced: replaced), entry)
        let isNewest = slot.newest.digest == entry.digest
        #expect(!isLaid || isNewest)
        // With `replaced` at the same stamp too, only the digests decide.
        if replaced != stamp(5) { #expect(isLaid == isNewest) }
      }
    }
  }

  @Test func `of equal stamps the later replaced wins, and none is the earliest`() throws {
    try expectSecondNewer("later replaced") { number in
      (
        try kept(number, stamp(5), replaced: stamp(3)),
        try kept(number + 1, stamp(5), replaced: stamp(4))
      )
    }
    try expectSecondNewer("none is the earliest") { number in
      (try kept(number, stamp(5)), try kept(number + 1, stamp(5), replaced: stamp(1)))
    }
  }

  @Test func `of equal stamps and equal replaced the larger digest wins`() throws {
    for number: Int64 in 0..<8 {
      let entries = [try kept(number, stamp(5)), try kept(number + 1, stamp(5))]
      let larger = entries.map(\.digest).max()
      #expect(merged(entries[0], entries[1]).newest.digest == larger)
    }
  }

  @Test func `a runner-up is kept while the newest is a value that was written without it`() throws
  {
    let older = try kept(1, stamp(3))
    #expect(merged(older, try kept(2, stamp(5))).runnerUp?.digest == older.digest)
    #expect(
      merged(older, try kept(2, stamp(5), replaced: stamp(2))).runnerUp?.digest == older.digest)
    #expect(merged(older, try kept(2, stamp(5), replaced: stamp(3))).runnerUp == nil)
    #expect(merged(older, try kept(nil, stamp(5))).runnerUp == nil)
  }
}
