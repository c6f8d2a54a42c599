import NIOCore
import Testing

@testable import KithProxy

@Suite struct ByteFaultsTests {
  /// The positions of altered bytes, and the position of the reset, in bytes cut in pieces.
  private func run(
    _ faults: FaultyProxy.Faults, seed: UInt64, pieces: [Int]
  ) -> (altered: [Int], reset: Int?) {
    var byteFaults = ByteFaults(seed: seed)
    byteFaults.set(faults)
    var position = 0
    var altered: [Int] = []
    for piece in pieces {
      var bytes = ByteBuffer(repeating: 0, count: piece)
      let outcome = byteFaults.apply(to: &bytes)
      let passing = outcome.resetAfter ?? piece
      let changed = bytes.readableBytesView.prefix(passing).enumerated().filter { $1 != 0 }
      #expect(changed.allSatisfy { $0.element.nonzeroBitCount == 1 })
      #expect(changed.count == outcome.corrupted)
      altered += changed.map { position + $0.offset }
      if let reset = outcome.resetAfter { return (altered, position + reset) }
      position += piece
    }
    return (altered, nil)
  }

  @Test func `how bytes are cut does not matter`() {
    let faults = FaultyProxy.Faults(corruption: .chance(0.01), resets: .chance(0.0002))
    for seed in 0..<50 as Range<UInt64> {
      let whole = run(faults, seed: seed, pieces: [10_000])
      let cut = run(faults, seed: seed, pieces: Array(repeating: 7, count: 1_429))
      #expect(whole.altered.filter { $0 < 9_990 } == cut.altered.filter { $0 < 9_990 })
      if let reset = whole.reset, reset < 9_990 { #expect(cut.reset == reset) }
    }
  }

  @Test func `every n-th byte is the n-th, the 2n-th and so on`() {
    let faults = FaultyProxy.Faults(corruption: .every(10))
    #expect(run(faults, seed: 1, pieces: [3, 4, 28]).altered == [9, 19, 29])
    #expect(run(.init(resets: .every(10)), seed: 1, pieces: [3, 4, 28]).reset == 9)
    #expect(run(.init(corruption: .every(0)), seed: 1, pieces: [3]).altered == [0, 1, 2])
  }

  @Test func `chances are kept, and at their ends certain`() {
    let some = run(.init(corruption: .chance(0.02)), seed: 5, pieces: [100_000]).altered
    #expect((1_700...2_300).contains(some.count))
    #expect(run(.init(corruption: .chance(0)), seed: 5, pieces: [1_000]).altered.isEmpty)
    #expect(run(.init(corruption: .chance(.nan)), seed: 5, pieces: [1_000]).altered.isEmpty)
    #expect(run(.init(corruption: .chance(7)), seed: 5, pieces: [1_000]).altered.count == 1_000)
  }

  @Test func `a fault that is set anew goes on from where the bytes are`() {
    var byteFaults = ByteFaults(seed: 3)
    var bytes = ByteBuffer(repeating: 0, count: 25)
    #expect(byteFaults.apply(to: &bytes).corrupted == 0)
    byteFaults.set(.init(corruption: .every(10)))
    var more = ByteBuffer(repeating: 0, count: 10)
    _ = byteFaults.apply(to: &more)
    #expect(more.readableBytesView.firstIndex { $0 != 0 } == 4)
    byteFaults.set(.none)
    var last = ByteBuffer(repeating: 0, count: 100)
    #expect(byteFaults.apply(to: &last).corrupted == 0)
  }
}
