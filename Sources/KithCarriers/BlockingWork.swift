import Kith
import NIOPosix
import Synchronization

/// Threads for calls that block, so that they do not hold up Swift's own.
///
/// They are started by the first work. If a network file system hangs, its threads hang with it, so each
/// folder has its own.
final class BlockingThreads: Sendable {
  /// Requests of all carriers. They end when their tasks do, so they can share threads.
  static let requests = BlockingThreads(count: CarrierLimits.requestThreads)

  private let pool: NIOThreadPool

  init(count: Int) { pool = NIOThreadPool(numberOfThreads: count) }

  deinit { pool.shutdownGracefully { _ in } }

  /// Queues work behind what waits; it takes false if the threads are ending.
  func submit(_ work: @escaping @Sendable (_ mayRun: Bool) -> Void) {
    pool.start()
    pool.submit { work($0 == .active) }
  }
}

/// The state of work on a thread, shared with the task that waits for it.
final class BlockingWork: Sendable {
  private struct State {
    var lastProgress: ContinuousClock.Instant
    var isAbandoned = false
    var wake: (@Sendable () -> Void)?
  }

  private let start = ContinuousClock.now
  private let state: Mutex<State>

  init() { state = Mutex(State(lastProgress: start)) }

  /// Whether nobody waits for the work any more. It then ends as soon as it can.
  var isAbandoned: Bool { state.withLock(\.isAbandoned) }

  /// Called by the work for each byte or step that got through.
  func progress() { state.withLock { $0.lastProgress = .now } }

  /// Sets what interrupts the work's wait. It is called under a lock, and never after it was set to
  /// nil.
  func setWake(_ wake: (@Sendable () -> Void)?) {
    state.withLock { state in
      state.wake = wake
      if state.isAbandoned { wake?() }
    }
  }

  func abandon() {
    state.withLock { state in
      state.isAbandoned = true
      state.wake?()
    }
  }

  /// Returns when the work made no progress for too long, or the task is cancelled.
  fileprivate func watch(quiet: Duration, longest: Duration) async {
    while !Task.isCancelled {
      let end = min(state.withLock(\.lastProgress) + quiet, start + longest)
      guard ContinuousClock.now < end else { return }
      try? await Task.sleep(until: end, clock: .continuous)
    }
  }
}

/// Runs work that blocks on a thread. It may go on for a while after this has failed.
///
/// - Throws: The work's failure, or ``CarrierFailure/Code/unreachable`` if it makes no progress for
///   the time `quiet`, takes longer than `longest`, or the task is cancelled.
func onThread<Value: Sendable>(
  of threads: BlockingThreads, quiet: Duration = CarrierLimits.quiet,
  longest: Duration = CarrierLimits.longest,
  _ work: @escaping @Sendable (BlockingWork) throws(CarrierFailure) -> Value
) async throws(CarrierFailure) -> Value {
  let progress = BlockingWork()
  // Only the first outcome counts.
  let (outcomes, outcome) = AsyncStream.makeStream(
    of: Result<Value, CarrierFailure>.self, bufferingPolicy: .bufferingOldest(1))
  let result = await withTaskGroup(of: Void.self) { group in
    group.addTask {
      await progress.watch(quiet: quiet, longest: longest)
      // The outcome first: work that ends early because it is abandoned may not succeed.
      outcome.yield(
        .failure(CarrierFailure(.unreachable, "The storage does not answer; Kith tries again.")))
      progress.abandon()
    }
    let result = await withTaskCancellationHandler {
      threads.submit { mayRun in
        // If it is abandoned, the outcome is there.
        guard mayRun, !progress.isAbandoned else {
          outcome.yield(
            .failure(CarrierFailure(.unreachable, "The storage is not used any more.")))
          return
        }
        do throws(CarrierFailure) {
          outcome.yield(.success(try work(progress)))
        } catch {
          outcome.yield(.failure(error))
        }
      }
      return await outcomes.first { _ in true }
    } onCancel: {
      outcome.finish()
      progress.abandon()
    }
    group.cancelAll()
    return result
  }
  guard let result else { throw CarrierFailure(.unreachable, "The operation was cancelled.") }
  return try result.get()
}
