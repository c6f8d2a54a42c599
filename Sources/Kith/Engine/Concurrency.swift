package import Dispatch
internal import KithStorage

enum BlockingThread {
  /// How often it is tried again to start a thread.
  private static let retryInterval = Duration.milliseconds(50)

  /// Starts a thread. Returns false if the system has none left.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool { HelperThreads.start(body) }

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

  /// Calls the body with every index below a count, with the helpers that are free, and returns after
  /// all calls.
  static func perform(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    HelperThreads.perform(count, body)
  }

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

  /// Runs blocking work as ``run(_:)`` does. If the task is cancelled, it returns nil at once; the work
  /// goes on, and its value is released.
  static func runUntilCancelled<Value: Sendable>(
    _ body: @escaping @Sendable () -> Value
  ) async -> Value? {
    let (values, continuation) = AsyncStream<Value>.makeStream()
    begin { continuation.yield(body()) }
    return await values.first { _ in true }
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
