import KithCrypto
import Testing

@testable import KithCore

/// A store's history alone: its bounds, and that storage follows.
@Suite struct PastValuesTests {
  private let store = TestWorld.store
  private let roomy = 1 << 30
  private let day: UInt64 = 24 * 3_600_000

  private func encoded(_ size: Int) throws -> EncodedValue { try EncodedValue(blob(size)) }

  /// The contents of storage after some mutations.
  private func applied(
    _ mutations: [Mutation], to disk: [UInt64: PastValue]
  ) -> [UInt64: PastValue] {
    var disk = disk
    for mutation in mutations {
      switch mutation {
      case .put(.store(_, .pastValue(let number)), let bytes):
        disk[number] = PastValue(number: number, decoding: bytes)
      case .remove(.store(_, .pastValue(let number))): disk[number] = nil
      default: Issue.record("\(mutation) is not about past values")
      }
    }
    return disk
  }

  @Test func `the newest of a key come first, and a missing value is one too`() throws {
    var history = PastValues()
    history.add(nil, of: "a", endedBy: nil, at: 10, limit: roomy)
    history.add(try encoded(1), of: "b", endedBy: nil, at: 11, limit: roomy)
    history.add(try encoded(2), of: "a", endedBy: nil, at: 12, limit: roomy)
    #expect(history.newest(9, of: "a", at: 12).map(\.number) == [3, 1])
    #expect(history.newest(9, of: "a", at: 12).map(\.value) == [blob(2), nil])
    #expect(history.newest(1, of: "a", at: 12).map(\.endedMilliseconds) == [12])
    #expect(history.newest(9, of: nil, at: 12).map(\.key) == ["a", "b", "a"])
    #expect(history.newest(9, of: "c", at: 12).isEmpty && !history.contains("c"))
    #expect(history.newest(-1, of: "a", at: 12).isEmpty)
  }

  @Test func `a key that changes often drops its own values, not those of others`() throws {
    var history = PastValues()
    history.add(try encoded(1), of: "calm", endedBy: nil, at: 0, limit: roomy)
    for number in 0..<10_000 as Range<UInt64> {
      history.add(try encoded(2), of: "busy", endedBy: nil, at: number, limit: roomy)
    }
    #expect(history.newest(.max, of: "busy", at: 0).count == Limits.pastValuesPerKey)
    #expect(history.newest(.max, of: "busy", at: 0).first?.number == 10_001)
    #expect(history.newest(.max, of: "calm", at: 0).map(\.number) == [1])
    #expect(history.save(in: store, at: 0).count == Limits.pastValuesPerKey + 1)
  }

  @Test func `above its bytes a history drops its oldest values, but never the last`() throws {
    var history = PastValues()
    for size in [100, 200, 300] {
      history.add(try encoded(size), of: Key("\(size)"), endedBy: nil, at: 0, limit: roomy)
    }
    let last = try encoded(400)
    history.add(last, of: "400", endedBy: nil, at: 0, limit: history.bytes)
    #expect(history.all.map(\.key) == ["300", "400"])
    #expect(history.bytes == history.all.reduce(0) { $0 + $1.keptBytes })
    history.add(last, of: "500", endedBy: nil, at: 0, limit: 0)
    #expect(history.all.map(\.key) == ["500"])
  }

  @Test func `a value is shown for thirty days, and dropped with the next commit`() throws {
    var history = PastValues()
    let start = TestWorld.origin
    history.add(try encoded(1), of: "a", endedBy: nil, at: start, limit: roomy)
    history.add(try encoded(2), of: "a", endedBy: nil, at: start + day, limit: roomy)
    #expect(history.save(in: store, at: start).count == 2)
    #expect(!history.hasExpired(at: 0) && !history.hasExpired(at: start + 30 * day - 1))
    let end = start + 30 * day
    #expect(history.hasExpired(at: end))
    // Not shown even while storage has it.
    #expect(history.newest(9, of: "a", at: end).map(\.number) == [2])
    #expect(history.save(in: store, at: end) == [.remove(.store(store, .pastValue(1)))])
    #expect(!history.hasExpired(at: end))
  }

  @Test func `storage holds exactly the past values once what they ask for is committed`() throws {
    var random = SeededEntropy(seed: 12)
    var history = PastValues()
    var disk: [UInt64: PastValue] = [:]
    let limit = 60_000
    for step in 0..<20_000 as Range<UInt64> {
      let key = Key("key \(min(Int.random(in: 0..<9, using: &random), 3))")
      let value =
        step.isMultiple(of: 7) ? nil : try encoded(Int.random(in: 0..<400, using: &random))
      history.add(value, of: key, endedBy: deviceKeys(1).id, at: step, limit: limit)
      let isLate = Int.random(in: 0..<3_000, using: &random) == 0
      if isLate {
        disk = applied(history.removeAll(in: store), to: disk)
        #expect(disk.isEmpty && history.bytes == 0 && history.count == 0)
      } else if Int.random(in: 0..<4, using: &random) == 0 {
        disk = applied(history.save(in: store, at: step), to: disk)
        #expect((disk.values.sorted { $0.number < $1.number } == history.all) as Bool)
        #expect(history.save(in: store, at: step).isEmpty)
      }
      let bytes = history.all.reduce(0) { $0 + $1.keptBytes }
      #expect(history.bytes == bytes && bytes <= limit && history.all.count == history.count)
    }
  }

  @Test func `a restored history goes on after the numbers that it had`() throws {
    var before = PastValues()
    for size in 1...3 { before.add(try encoded(size), of: "a", endedBy: nil, at: 5, limit: roomy) }
    _ = before.save(in: store, at: 5)
    var after = PastValues()
    for value in before.all { after.restore(value) }
    #expect(after.save(in: store, at: 5).isEmpty)
    for _ in 0..<2 {
      let value = try encoded(9)
      before.add(value, of: "b", endedBy: nil, at: 6, limit: before.bytes)
      after.add(value, of: "b", endedBy: nil, at: 6, limit: after.bytes)
    }
    #expect(after.all == before.all && after.bytes == before.bytes)
    let (left, right) = (before.save(in: store, at: 6), after.save(in: store, at: 6))
    #expect(left == right && left.contains(.remove(.store(store, .pastValue(1)))))
  }

  @Test func `a past value is read as it was written`() throws {
    for (shown, device) in [(try encoded(3), nil), (nil, deviceKeys(1).id)] {
      let value = PastValue(
        number: 7, transaction: 7, key: "k\u{e9}", shown: shown, endedMilliseconds: .max,
        endedBy: device)
      let read = PastValue(number: 7, decoding: value.encoded())
      #expect(read == value)
    }
    #expect(PastValue(number: 1, decoding: [0xff]) == nil)
  }
}
