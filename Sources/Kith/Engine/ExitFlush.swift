internal import Dispatch
internal import Glibc
internal import Synchronization

/// A part of Kith with work at a normal end of the process.
protocol EndsWithProcess: AnyObject, Sendable {
  /// Called on its own thread.
  func endWithProcess()
}

extension Engine: EndsWithProcess {
  /// No caller is left for an error.
  func endWithProcess() {
    state.withLock { $0.shell.endEarlySending() }
    try? flush()
  }
}

/// At a normal end of the process (`exit`, or the return of `main`), makes writes to open stores
/// durable, and tells attached programs so.
final class ExitFlush: Sendable {
  static let longestWait = Duration.seconds(2)

  private struct Weak {
    weak var part: (any EndsWithProcess)?
  }

  private let parts = Mutex<[Weak]>([])
  private let hasBegun = Atomic(false)

  private static let ofProcess: ExitFlush = {
    atexit { ExitFlush.atEnd() }
    return ExitFlush()
  }()
  /// A child of `fork` inherits locks and connections, and must not touch them.
  private static let process = getpid()

  static func register(_ part: any EndsWithProcess) {
    _ = process
    ofProcess.register(part)
  }

  private static func atEnd() {
    guard getpid() == process else { return }
    ofProcess.run(within: longestWait)
  }

  /// Holds the part weakly.
  func register(_ part: any EndsWithProcess) {
    parts.withLock { parts in
      parts.removeAll { $0.part == nil }
      parts.append(Weak(part: part))
    }
  }

  /// Returns once all parts have ended or the time is over. A second call does nothing.
  ///
  /// This thread takes no lock, because it may hold any already.
  func run(within limit: Duration) {
    guard !hasBegun.exchange(true, ordering: .relaxed) else { return }
    let finished = DispatchSemaphore(value: 0)
    let isStarted = BlockingThread.start {
      let ended = DispatchSemaphore(value: 0)
      let parts = self.parts.withLock { $0.compactMap(\.part) }
      for part in parts {
        // On its own thread, so that a stuck part does not block the others.
        let isStarted = BlockingThread.start {
          part.endWithProcess()
          ended.signal()
        }
        guard !isStarted else { continue }
        part.endWithProcess()
        ended.signal()
      }
      for _ in parts { ended.wait() }
      finished.signal()
    }
    // Without a thread nothing can be done, because this one must not lock.
    guard isStarted else { return }
    _ = finished.wait(timeout: .now() + limit.dispatch)
  }
}
