internal import Dispatch
internal import Kith
internal import Synchronization

/// Runs asynchronous work on the thread of the call that waits for it, so that closures of that work
/// run there too.
final class CallingThread: TaskExecutor {
  private final class Outcome<Success: Sendable>: Sendable {
    let result = Mutex<Result<Success, KithError>?>(nil)
  }

  private let jobs = Mutex<[UnownedJob]>([])
  private let isCalled = DispatchSemaphore(value: 0)

  private init() {}

  /// Blocks until the body has returned.
  static func run<Success: Sendable>(
    _ body: @escaping @Sendable () async throws(KithError) -> Success
  ) throws(KithError) -> Success {
    let thread = CallingThread()
    let outcome = Outcome<Success>()
    Task(executorPreference: thread) {
      let result: Result<Success, KithError>
      do throws(KithError) {
        result = .success(try await body())
      } catch {
        result = .failure(error)
      }
      outcome.result.withLock { $0 = result }
    }
    while true {
      if let result = outcome.result.withLock({ $0 }) { return try result.get() }
      thread.isCalled.wait()
      let job = thread.jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      job?.runSynchronously(on: thread.asUnownedTaskExecutor())
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
    isCalled.signal()
  }
}
