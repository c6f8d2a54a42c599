internal import Glibc

/// A thread for work that blocks.
enum BlockingThread {
  private final class Work {
    let name: String
    let body: () -> Void

    init(name: String, body: @escaping () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a detached thread that ends with its body.
  static func start(name: String, _ body: @escaping @Sendable () -> Void) {
    let work = Unmanaged.passRetained(Work(name: name, body: body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
        pthread_setname_np(pthread_self(), work.name)
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
