import KithCore
import KithTestSupport
import Testing

@testable import Kith

/// Random changes under random taking: what is taken, replayed over the old view, gives the new.
struct ChangeBufferTests {
  @Test(arguments: 0..<40 as Range<UInt64>)
  func replayGivesTheView(seed: UInt64) async throws {
    var random = Random(state: seed &+ 1)
    let identifier = try #require(StoreIdentifier("com.example.test"))
    let view = StoreView(identifier: identifier, device: .test, values: ["k0": 0, "k1": 1])
    let all = view.subscribe(seesOwnWrites: true)
    let outside = view.subscribe(seesOwnWrites: false)
    var allView = all.values
    var outsideView = outside.values
    var allChanges = all.changes.makeAsyncIterator()
    var outsideChanges = outside.changes.makeAsyncIterator()
    var joined = 0
    // The last change of each kind says that everything before it was taken.
    for step in 0..<600 {
      let isOwn = random.next(3) == 0
      var changes: [(key: Key, value: EncodedValue?)] = []
      for key in 0..<5 where random.next(3) == 0 {
        let value: EncodedValue? =
          random.next(4) == 0 ? nil : try EncodedValue(.integer(Int64(random.next(3))))
        changes.append((Key("k\(key)"), value))
      }
      if changes.isEmpty { continue }
      let reason: ChangeReason? =
        isOwn ? nil : step % 2 == 0 ? .externalChange : .quotaViolationChange
      for run in view.apply([ViewChange(store: identifier, reason: reason, changes: changes)]) {
        run()
      }
      if isOwn { for (key, value) in changes { outsideView[key] = try value?.decoded() } }
    }
    for run in view.apply([
      ViewChange(
        store: identifier, reason: .accountChange, changes: [("end", try EncodedValue(true))])
    ]) { run() }
    while allView["end"] == nil {
      let change = try #require(await allChanges.next())
      joined += change.isJoined ? 1 : 0
      for item in change.items {
        #expect(allView[item.key] == item.old, "seed \(seed)")
        allView[item.key] = item.new
      }
    }
    while outsideView["end"] == nil {
      let change = try #require(await outsideChanges.next())
      for item in change.items { outsideView[item.key] = item.new }
    }
    #expect(joined == 1, "the buffer is full, so its last change is a joined one")
    #expect(allView == view.values, "seed \(seed)")
    #expect(outsideView == view.values, "seed \(seed)")
  }

  /// A small change waited for 64 large ones to be printed before it.
  @Test func aSmallChangeWaitsForFewBytes() async throws {
    let identifier = try #require(StoreIdentifier("com.example.test"))
    let view = StoreView(identifier: identifier, device: .test, values: [:])
    let subscription = view.subscribe(seesOwnWrites: true)
    func show(_ key: String, _ value: PropertyListValue) throws {
      let change = ViewChange(
        store: identifier, reason: .externalChange, changes: [(Key(key), try EncodedValue(value))])
      for run in view.apply([change]) { run() }
    }
    for number in 0..<40 {
      try show("large \(number % 2)", .string(String(repeating: "\(number % 10)", count: 500_000)))
    }
    try show("small", 1)
    var changes = subscription.changes.makeAsyncIterator()
    var (bytes, count, shown): (Int, Int, [Key: PropertyListValue]) = (0, 0, [:])
    while shown["small"] == nil {
      let change = try #require(await changes.next())
      count += 1
      for item in change.items {
        #expect(shown[item.key] == item.old)
        shown[item.key] = item.new
        if case .string(let text)? = item.new { bytes += text.utf8.count }
      }
    }
    #expect(bytes <= 4 * 500_000 && count < 20, "\(count) changes, \(bytes) bytes")
    #expect(shown.count == 3)
  }

  /// The changes of signing in to a full store take more than may wait; a program still has to unite
  /// its values with the account's, not to read the store again.
  @Test func `a first sync stays one if it is joined with the change of the account`() async throws
  {
    let identifier = try #require(StoreIdentifier("com.example.test"))
    let view = StoreView(identifier: identifier, device: .test, values: ["a": "mine"])
    var changes = view.subscribe(seesOwnWrites: false).changes.makeAsyncIterator()
    let large = try EncodedValue(.string(String(repeating: "x", count: 1_000_000)))
    let shown: [Key: EncodedValue] = ["a": large, "b": large]
    for run in view.show(shown, of: .test, reason: .initialSyncChange, superseded: ["a"]) { run() }
    let change = try #require(await changes.next())
    #expect(change.isJoined && change.reason == .initialSyncChange)
    #expect(change.keys == ["a", "b"] && change.superseded == ["a"])
    // The person leaves the account: nothing of it may be united with the next one's.
    for run in view.show(shown, of: .test, reason: .initialSyncChange, superseded: []) { run() }
    for run in view.show([:], of: .test, reason: .accountChange, superseded: []) { run() }
    var last = try #require(await changes.next())
    while last.items.contains(where: { $0.new != nil }) {
      last = try #require(await changes.next())
    }
    #expect(last.reason == .accountChange)
  }

  @MainActor
  @Test func aChangeOnItsWayToItsConsumerKnowsOwnWritesMadeMeanwhile() async throws {
    let identifier = try #require(StoreIdentifier("com.example.test"))
    let view = StoreView(identifier: identifier, device: .test, values: [:])
    let (_, changes) = view.subscribe(seesOwnWrites: false)
    let taken = Task { @MainActor in
      var iterator = changes.makeAsyncIterator()
      return await iterator.next(isolation: MainActor.shared)
    }
    let buffer = changes.subscription.buffer
    try await eventually { @Sendable in buffer.isAwaited }
    // Both before the consumer, which waits for this actor, can run.
    for (reason, value) in [(ChangeReason.externalChange, "theirs"), (nil, "ours")] {
      let change = ViewChange(
        store: identifier, reason: reason,
        changes: [("k", try EncodedValue(.string(value)))])
      for run in view.apply([change]) { run() }
    }
    #expect(await taken.value?.items == [.init(key: "k", old: nil, new: "ours")])
  }
}

/// A small generator: Knuth's MMIX constants.
struct Random {
  var state: UInt64

  mutating func next(_ bound: UInt64) -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 33) % bound
  }
}
