internal import Kith
public import ServiceLifecycle

extension UserDefaultsMirror: Service {
  /// Mirrors until the task is cancelled, its service group shuts down or the accounts are closed.
  ///
  /// It compares both sides at the start, on each change of the store, at each `interval`, and at
  /// the end, so the program's last writes are not lost.
  ///
  /// In a `ServiceGroup`, list the mirror after its `Accounts`: services end in reverse order.
  public func run() async throws {
    let changes = store.snapshotAndChanges().changes
    sync()
    defer { sync() }
    await cancelWhenGracefulShutdown {
      var bodies: [@Sendable () async -> Void] = [
        {
          let keys = Set(self.keys.map { KeyValueStore.Key($0) })
          for await change in changes
          where change.isJoined
            || change.items.contains(where: { keys.contains($0.key) })
          {
            self.sync()
          }
        }
      ]
      if let interval = self.interval {
        bodies.append { while (try? await Task.sleep(for: interval)) != nil { self.sync() } }
      }
      await race(bodies)
    }
  }
}
