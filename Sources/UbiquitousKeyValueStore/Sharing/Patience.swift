#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Synchronization

  /// Does again what failed only because what stands behind the store is about to be replaced:
  /// another program had the directory open and ended, or somebody signed in. It is a matter of
  /// milliseconds, and no failure that programs of Apple's class know; many end themselves when
  /// `synchronize()` is false.
  final class Patience: Sendable {
    private static let pause = 0.002

    /// How long the first to meet it waits. Where that was in vain, nobody waits until something
    /// succeeded again.
    private let limit: Duration
    private let isExhausted = Mutex(false)

    init(limit: Duration = .seconds(10)) {
      self.limit = limit
    }

    /// Does it until it works, fails for another reason, or the time is over.
    func attempt(_ body: () throws(KithError) -> Void) throws(KithError) {
      let deadline = ContinuousClock.now + limit
      while true {
        do throws(KithError) {
          try body()
          isExhausted.withLock { $0 = false }
          return
        } catch {
          guard error.code == .closed, !isExhausted.withLock({ $0 }) else { throw error }
          guard ContinuousClock.now < deadline else {
            isExhausted.withLock { $0 = true }
            throw error
          }
        }
        Thread.sleep(forTimeInterval: Self.pause)
      }
    }
  }
#endif
