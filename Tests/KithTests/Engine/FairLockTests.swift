import Dispatch
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct FairLockTests {
  /// A thread that gives the lock back and takes it again at once kept a waiting thread out for as long
  /// as it went on.
  @Test func aThreadThatTakesItAgainAndAgainKeepsNobodyOut() async throws {
    let lock = FairLock(0)
    let progress = Progress()
    // On a thread of its own: Swift's are for others.
    async let flooding: Void = BlockingThread.run {
      while !progress.isOver.load(ordering: .relaxed) {
        lock.withLock { value in
          let end = DispatchTime.now().uptimeNanoseconds + 4_000_000
          while DispatchTime.now().uptimeNanoseconds < end {}
          value += 1
        }
        progress.turns.wrappingAdd(1, ordering: .relaxed)
      }
    }
    defer { progress.isOver.store(true, ordering: .relaxed) }
    var most = 0
    for _ in 0..<20 {
      let began = progress.turns.load(ordering: .relaxed)
      try await eventually("a turn of the flood", every: 1) {
        progress.turns.load(ordering: .relaxed) != began
      }
      most = max(
        most,
        await BlockingThread.run {
          let before = progress.turns.load(ordering: .relaxed)
          lock.withLock { $0 += 1 }
          return progress.turns.load(ordering: .relaxed) - before
        })
    }
    progress.isOver.store(true, ordering: .relaxed)
    await flooding
    print("at most \(most) turns of the flood before a waiter's")
    // One is under way, and one may be before the waiter has asked; more if its thread was late to.
    #expect(most <= 20)
  }

  private final class Progress: Sendable {
    let isOver = Atomic(false)
    let turns = Atomic(0)
  }

  @Test func manyThreadsCountRight() async {
    let lock = FairLock(0)
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          for number in 0..<2_000 {
            lock.withLock { $0 += 1 }
            if number % 50 == 0 { await Task.yield() }
          }
        }
      }
    }
    #expect(lock.withLock { $0 } == 16_000)
  }
}
