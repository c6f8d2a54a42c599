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

  /// Queues work behind what waits.
  ///
  /// - Parameter work: Takes whether it may run; false if the threads are ending.
  func submit(_ work: @escaping @Sendable (Bool) -> Void) {
    pool.start()
    pool.submit { state in
      if case .active = state { work(true) } else { work(false) }
    }
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

/// Runs work on a thread.
///
/// - Parameters:
///   - threads: The threads.
///   - quiet: The time without progress after which this fails.
///   - longest: The time after which this fails in any case.
///   - work: Blocks. It may go on for a while after this has failed.
/// - Returns: The work's result.
/// - Throws: The work's failure, or ``CarrierFailure/Code/unreachable`` if it takes too long or the
///   task is cancelled.
func onThread<Value: Sendable>(
  of threads: BlockingThreads, quiet: Duration = CarrierLimits.quiet,
  longest: Duration = CarrierLimits.longest,
  _ work: @escaping @Sendable (BlockingWork) throws(CarrierFailure) -> Value
) async throws(CarrierFailure) -> Value {
  let progress = BlockingWork()
  let outcome = FirstOutcome<Value>()
  let result = await withTaskGroup(of: Void.self) { group in
    group.addTask {
      await progress.watch(quiet: quiet, longest: longest)
      // The outcome first: work that ends early because it is abandoned may not succeed.
      outcome.set(
        .failure(CarrierFailure(.unreachable, "The storage does not answer; Kith tries again.")))
      progress.abandon()
    }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        outcome.resume(continuation)
        threads.submit { mayRun in
          // If it is abandoned, the outcome is set.
          guard mayRun, !progress.isAbandoned else {
            return outcome.set(
              .failure(CarrierFailure(.unreachable, "The storage is not used any more.")))
          }
          do throws(CarrierFailure) {
            outcome.set(.success(try work(progress)))
          } catch {
            outcome.set(.failure(error))
          }
        }
      }
    } onCancel: {
      outcome.set(.failure(CarrierFailure(.unreachable, "The operation was cancelled.")))
      progress.abandon()
    }
    group.cancelAll()
    return result
  }
  return try result.get()
}

/// The first of several outcomes; later ones are dropped.
private final class FirstOutcome<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, CarrierFailure>

  private enum State {
    case waiting(CheckedContinuation<Outcome, Never>?)
    case early(Outcome)
    case done
  }

  private let state = Mutex(State.waiting(nil))

  func resume(_ continuation: CheckedContinuation<Outcome, Never>) {
    let outcome: Outcome? = state.withLock { state in
      guard case .early(let outcome) = state else {
        state = .waiting(continuation)
        return nil
      }
      state = .done
      return outcome
    }
    if let outcome { continuation.resume(returning: outcome) }
  }

  func set(_ outcome: Outcome) {
    let continuation: CheckedContinuation<Outcome, Never>? = state.withLock { state in
      guard case .waiting(let continuation) = state else { return nil }
      state = continuation == nil ? .early(outcome) : .done
      return continuation
    }
    continuation?.resume(returning: outcome)
  }
}
