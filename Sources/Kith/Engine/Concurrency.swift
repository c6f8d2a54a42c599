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

  static func start(_ body: @escaping @Sendable () -> Void) {
    let result = begin(body)
    guard result == 0 else { fatalError("no thread could be started: error \(result)") }
  }

  /// Returns an error number; 0: the thread began.
  private static func begin(_ body: @escaping @Sendable () -> Void) -> Int32 {
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
      return result
    }
    pthread_detach(thread)
    return 0
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
      begin {
        while let index = indices.take() { body(index) }
        ended.signal()
      } == 0
    }
    while let index = indices.take() { body(index) }
    for _ in 0..<begun { ended.wait() }
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
