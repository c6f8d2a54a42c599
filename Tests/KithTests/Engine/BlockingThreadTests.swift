import Dispatch
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(2)))
struct BlockingThreadTests {
  private final class Entered: Sendable {
    let order = Mutex<[Int]>([])
  }

  /// A node above its `TasksMax` ended itself.
  @Test func `work waits while the system has no thread`() async throws {
    let attempts = Counter()
    let isDone = Counter()
    BlockingThread.begin {
      isDone.add()
    } by: { body in
      attempts.add()
      return attempts.value > 2 && BlockingThread.start(body)
    }
    #expect(attempts.value == 1)
    try await eventually { isDone.value == 1 }
    #expect(attempts.value == 3)
  }

  /// Each unanswered flush of an attached program had a thread: 256 for each of 64 connections.
  @Test func `a queue lets in no more than its limit, in order`() async throws {
    let queue = TaskQueue(limit: 3)
    for _ in 0..<3 { await queue.acquire() }
    let entered = Entered()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          await queue.acquire()
          entered.order.withLock { $0.append(number) }
        }
        try await eventually { queue.waiting == number + 1 }
      }
      for count in 1...4 {
        queue.release()
        try await eventually { entered.order.withLock(\.count) == count }
      }
    }
    #expect(entered.order.withLock(\.self) == [0, 1, 2, 3])
    // Those that have left make room.
    for _ in 0..<3 { queue.release() }
    for _ in 0..<3 { await queue.acquire() }
    #expect(queue.waiting == 0)
  }
}
