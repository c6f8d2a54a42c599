import Glibc
import Kith
import Synchronization
import Testing

@testable import KithCarriers

@Suite(.timeLimit(.minutes(1)))
struct BlockingWorkTests {
  private let threads = BlockingThreads(count: 2)

  /// A listing that ends early must not pass for a whole one.
  @Test func abandonedWorkCannotSucceed() async {
    for _ in 0..<20 {
      await expectFailure(.unreachable) {
        _ = try await onThread(of: threads, quiet: .milliseconds(5)) { work in
          while !work.isAbandoned {}
          return 1
        }
      }
    }
  }

  @Test func progressKeepsWorkAlive() async throws {
    let steps = 40
    let result = try await onThread(of: threads, quiet: .milliseconds(500)) { work in
      let start = ContinuousClock.now
      var step = 0
      while step < steps {
        if ContinuousClock.now - start > .milliseconds(20 * step) {
          work.progress()
          step += 1
        }
      }
      return step
    }
    #expect(result == steps)
  }

  @Test func progressDoesNotLastForEver() async {
    await expectFailure(.unreachable) {
      try await onThread(of: threads, quiet: .seconds(30), longest: .milliseconds(50)) { work in
        while !work.isAbandoned { work.progress() }
      }
    }
  }

  @Test func workThatWaitsBehindWorkThatHangsIsLeftAndNeverRuns() async throws {
    let mayEnd = Mutex(false)
    let hasRun = Mutex(false)
    // Both threads hang.
    for _ in 0..<2 {
      await expectFailure(.unreachable) {
        try await onThread(of: threads, quiet: .milliseconds(20)) { _ in
          while !mayEnd.withLock({ $0 }) {}
        }
      }
    }
    await expectFailure(.unreachable) {
      try await onThread(of: threads, quiet: .milliseconds(20)) { _ in hasRun.withLock { $0 = true }
      }
    }
    mayEnd.withLock { $0 = true }
    #expect(try await onThread(of: threads) { _ in 1 } == 1)
    #expect(!hasRun.withLock { $0 })
  }

  /// Waiting for a thread would count as the storage's silence. The first work hangs until four more
  /// run at once.
  @Test func `a folder has threads for four gets beside an operation that hangs`() async throws {
    let threads = BlockingThreads(count: CarrierLimits.folderThreads)
    let gets = Gets()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<5 {
        group.addTask {
          try await onThread(of: threads, quiet: .seconds(10)) { work in
            if number > 0 { gets.count.withLock { $0 += 1 } }
            while gets.count.withLock({ $0 }) < 4, !work.isAbandoned { usleep(1_000) }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  private final class Gets: Sendable { let count = Mutex(0) }

  @Test func aCancelledTaskRunsNothing() async {
    let hasRun = Mutex(false)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await onThread(of: threads) { _ in hasRun.withLock { $0 = true } }
    }
    await expectFailure(.unreachable) { try await task.value }
    #expect(!hasRun.withLock { $0 })
  }

  @Test func failuresAreTheWorks() async {
    await expectFailure(.full) {
      try await onThread(of: threads) { _ throws(CarrierFailure) in
        throw CarrierFailure(.full, "Full.")
      }
    }
  }
}
