package import Dispatch
internal import Glibc
internal import Synchronization

enum BlockingThread {
  private final class Work {
    let body: () -> Void

    init(_ body: @escaping () -> Void) {
      self.body = body
    }
  }

  /// How often it is tried again to start a thread.
  private static let retryInterval = Duration.milliseconds(50)

  /// Starts a thread. Returns false if the system has none left, such as above the `TasksMax` of a
  /// systemd unit.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let work = Unmanaged.passRetained(Work(body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
        work.body()
        return nil
      }, work.toOpaque())
    guard result == 0 else {
      work.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  /// Starts a thread as soon as the system has one.
  static func begin(
    _ body: @escaping @Sendable () -> Void,
    by start: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool = start
  ) {
    guard !start(body) else { return }
    DispatchQueue.global().asyncAfter(deadline: .now() + retryInterval.dispatch) {
      begin(body, by: start)
    }
  }
}

extension BlockingThread {
  /// Threads of ``perform(_:_:)`` that run beside its callers', in all.
  private static let helperLimit = max(0, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1, 7))
  private static let helpers = Mutex(0)

  private final class Indices: Sendable {
    private let next = Atomic(0)
    private let count: Int

    init(count: Int) { self.count = count }

    func take() -> Int? {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      return index < count ? index : nil
    }
  }

  /// Calls the body with every index below a count, and returns after all calls. Free processors help:
  /// a helper lives as long as the work, and its start takes less time than two signature checks.
  static func perform(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let indices = Indices(count: count)
    let wanted = helpers.withLock { busy in
      let wanted = max(0, min(count - 1, helperLimit - busy))
      busy += wanted
      return wanted
    }
    defer { helpers.withLock { $0 -= wanted } }
    let ended = DispatchSemaphore(value: 0)
    let begun = (0..<wanted).count { _ in
      start {
        while let index = indices.take() { body(index) }
        ended.signal()
      }
    }
    while let index = indices.take() { body(index) }
    for _ in 0..<begun { ended.wait() }
  }
}

extension BlockingThread {
  /// Runs blocking work on its own thread: Swift's shared threads are only as many as cores. Waits if
  /// the system has no thread left.
  static func run<Result: Sendable, Failure>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result = await withCheckedContinuation { continuation in
      begin { continuation.resume(returning: Swift.Result(catching: body)) }
    }
    return try result.get()
  }
}

extension DispatchQueue {
  /// Runs blocking work: Swift's shared threads are only as many as cores.
  package func run<Value: Sendable>(
    _ body: @escaping @Sendable () -> Value
  ) async -> Value {
    await withCheckedContinuation { continuation in
      self.async { continuation.resume(returning: body()) }
    }
  }
}

/// Runs the bodies at once until the first ends, then cancels the others and waits for them.
package func race(_ bodies: [@Sendable () async -> Void]) async {
  await withTaskGroup(of: Void.self) { group in
    for body in bodies { group.addTask(operation: body) }
    await group.next()
    group.cancelAll()
  }
}

extension Result {
  /// As `init(catching:)`, for a body that waits.
  package init(awaiting body: () async throws(Failure) -> Success) async {
    do throws(Failure) {
      self = .success(try await body())
    } catch {
      self = .failure(error)
    }
  }
}
