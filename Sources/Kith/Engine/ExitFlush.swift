internal import Dispatch
internal import Glibc
internal import Synchronization

/// A part of Kith with something to do at a normal end of the process.
protocol EndsWithProcess: AnyObject, Sendable {
  /// Does it. Called on a thread of its own.
  func endWithProcess()
}

extension Engine: EndsWithProcess {
  /// Makes accepted writes durable; nobody is left to be told of an error.
  func endWithProcess() { try? flush() }
}

/// Makes durable at a normal end of the process (`exit`, or the return of `main`) what programs wrote
/// to stores that are still open, and tells attached programs so.
final class ExitFlush: Sendable {
  /// How long it may hold up the end of the process.
  static let longestWait = Duration.seconds(2)

  private struct Weak {
    weak var part: (any EndsWithProcess)?
  }

  private let parts = Mutex<[Weak]>([])
  private let hasBegun = Atomic(false)

  /// The parts that end with the process.
  private static let ofProcess: ExitFlush = {
    atexit { ExitFlush.atEnd() }
    return ExitFlush()
  }()
  /// A child of `fork` inherits locks and connections, and must touch none.
  private static let process = getpid()

  /// Ends a part with the process, if it is still there.
  static func register(_ part: any EndsWithProcess) {
    _ = process
    ofProcess.register(part)
  }

  private static func atEnd() {
    guard getpid() == process else { return }
    ofProcess.run(within: longestWait)
  }

  /// Ends a part in ``run(within:)``, if it is still there.
  func register(_ part: any EndsWithProcess) {
    parts.withLock { parts in
      parts.removeAll { $0.part == nil }
      parts.append(Weak(part: part))
    }
  }

  /// Ends all, and returns once that is done or the time is over. Does nothing the second time.
  ///
  /// It takes no lock on this thread: the one that ends the process may hold any of them.
  func run(within limit: Duration) {
    guard !hasBegun.exchange(true, ordering: .relaxed) else { return }
    let finished = DispatchSemaphore(value: 0)
    BlockingThread.start {
      let ended = DispatchSemaphore(value: 0)
      let parts = self.parts.withLock { $0.compactMap(\.part) }
      for part in parts {
        // Each on its own thread: one that is stuck must not keep the others from it.
        BlockingThread.start {
          part.endWithProcess()
          ended.signal()
        }
      }
      for _ in parts { ended.wait() }
      finished.signal()
    }
    _ = finished.wait(timeout: .now() + limit.dispatch)
  }
}
