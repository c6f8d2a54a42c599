internal import Dispatch
internal import Glibc
internal import Synchronization

/// Makes durable at a normal end of the process (`exit`, or the return of `main`) what programs wrote
/// to stores that are still open.
final class ExitFlush: Sendable {
  /// How long it may hold up the end of the process.
  static let longestWait = Duration.seconds(2)

  private struct Weak {
    weak var service: (any StoreService)?
  }

  private let services = Mutex<[Weak]>([])
  private let hasBegun = Atomic(false)

  /// The services that the process flushes at its end.
  private static let ofProcess: ExitFlush = {
    atexit { ExitFlush.atEnd() }
    return ExitFlush()
  }()
  /// A child of `fork` inherits locks and connections, and must touch none.
  private static let process = getpid()

  /// Flushes a service at the end of the process, if it is still there.
  static func register(_ service: any StoreService) {
    _ = process
    ofProcess.register(service)
  }

  private static func atEnd() {
    guard getpid() == process else { return }
    ofProcess.run(within: longestWait)
  }

  /// Flushes a service in ``run(within:)``, if it is still there.
  func register(_ service: any StoreService) {
    services.withLock { services in
      services.removeAll { $0.service == nil }
      services.append(Weak(service: service))
    }
  }

  /// Flushes all, and returns once that is done or the time is over. Does nothing the second time.
  ///
  /// It takes no lock on this thread: the one that ends the process may hold any of them.
  func run(within limit: Duration) {
    guard !hasBegun.exchange(true, ordering: .relaxed) else { return }
    let finished = DispatchSemaphore(value: 0)
    BlockingThread.start {
      let flushed = DispatchSemaphore(value: 0)
      let services = self.services.withLock { $0.compactMap(\.service) }
      for service in services {
        // Each on its own thread: one that is stuck must not keep the others from it.
        BlockingThread.start {
          // Nobody is left to be told of an error.
          try? service.flush()
          flushed.signal()
        }
      }
      for _ in services { flushed.wait() }
      finished.signal()
    }
    _ = finished.wait(timeout: .now() + limit.dispatch)
  }
}
