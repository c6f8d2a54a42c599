package import Dispatch
internal import Glibc

enum BlockingThread {
  private final class Work {
    let body: () -> Void

    init(_ body: @escaping () -> Void) {
      self.body = body
    }
  }

  static func start(_ body: @escaping @Sendable () -> Void) {
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
      fatalError("no thread could be started: error \(result)")
    }
    pthread_detach(thread)
  }
}

extension BlockingThread {
  /// Runs blocking work on its own thread: Swift's shared threads are only as many as cores.
  static func run<Result: Sendable, Failure>(
    _ body: @escaping @Sendable () throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let result = await withCheckedContinuation { continuation in
      start { continuation.resume(returning: Swift.Result(catching: body)) }
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
