package import Dispatch

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
