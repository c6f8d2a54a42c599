import Dispatch
import Glibc
import Synchronization

/// Threads apart from those of Swift and libdispatch, which are only as many as processors.
package enum HelperThreads {
  private final class Work {
    let body: () -> Void

    init(_ body: @escaping () -> Void) {
      self.body = body
    }
  }

  private final class Indices: Sendable {
    private let next = Atomic(0)
    private let count: Int

    init(count: Int) { self.count = count }

    func take() -> Int? {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      return index < count ? index : nil
    }
  }

  /// Threads of ``perform(_:_:)`` that run beside its callers', in all.
  private static let limit = max(0, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1, 7))
  private static let busyCount = Mutex(0)

  /// Starts a thread. Returns false if the system has none left, such as above the `TasksMax` of a
  /// systemd unit.
  package static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
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

  /// Calls the body with every index below a count, and returns after all calls. Free processors help:
  /// a helper lives as long as the work, and its start takes less time than two signature checks.
  /// `meanwhile` runs on this thread, which helps after it.
  package static func perform(
    _ count: Int, meanwhile: () -> Void = {}, _ body: @escaping @Sendable (Int) -> Void
  ) {
    let indices = Indices(count: count)
    let wanted = busyCount.withLock { busy in
      let wanted = max(0, min(count - 1, limit - busy))
      busy += wanted
      return wanted
    }
    defer { busyCount.withLock { $0 -= wanted } }
    let ended = DispatchSemaphore(value: 0)
    let begun = (0..<wanted).count { _ in
      start {
        while let index = indices.take() { body(index) }
        ended.signal()
      }
    }
    meanwhile()
    while let index = indices.take() { body(index) }
    for _ in 0..<begun { ended.wait() }
  }

  /// Returns a pure function's values for every index below `count`, in order. A thread takes `piece`
  /// of them at a time; this thread after `meanwhile`.
  static func values<Value: Sendable>(
    _ count: Int, by piece: Int, meanwhile: () -> Void = {},
    _ value: @escaping @Sendable (Int) -> Value
  ) -> [Value] {
    [Value](unsafeUninitializedCapacity: count) { buffer, initialized in
      // Each call writes only its own elements, and all calls return before the array is read.
      nonisolated(unsafe) let target = buffer.baseAddress
      perform((count + piece - 1) / piece, meanwhile: meanwhile) { number in
        for index in (number * piece)..<min(count, (number + 1) * piece) {
          target?.advanced(by: index).initialize(to: value(index))
        }
      }
      initialized = count
    }
  }
}
