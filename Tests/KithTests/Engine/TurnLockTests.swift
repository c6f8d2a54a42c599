import Dispatch
import Synchronization
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct TurnLockTests {
  /// A thread that gives the lock back and takes it again at once kept a waiting thread out for as long
  /// as it went on.
  @Test func aThreadThatTakesItAgainAndAgainKeepsNobodyOut() async throws {
    let lock = TurnLock(0)
    let isOver = Atomic(false)
    let turns = Atomic(0)
    let flooding = Task.detached {
      while !isOver.load(ordering: .relaxed) {
        lock.withLock { value in
          let end = DispatchTime.now().uptimeNanoseconds + 4_000_000
          while DispatchTime.now().uptimeNanoseconds < end {}
          value += 1
        }
        turns.wrappingAdd(1, ordering: .relaxed)
      }
    }
    var most = 0
    for _ in 0..<20 {
      // Each time while it is held.
      let before = turns.load(ordering: .relaxed)
      while turns.load(ordering: .relaxed) == before { await Task.yield() }
      let began = turns.load(ordering: .relaxed)
      try await BlockingThread.run { lock.withLock { $0 += 1 } }
      most = max(most, turns.load(ordering: .relaxed) - began)
    }
    isOver.store(true, ordering: .relaxed)
    await flooding.value
    print("at most \(most) turns of the flood before a waiter's")
    // One is under way; others if the waiter's thread was late to ask.
    #expect(most <= 20)
  }

  @Test func manyThreadsCountRight() async {
    let lock = TurnLock(0)
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
