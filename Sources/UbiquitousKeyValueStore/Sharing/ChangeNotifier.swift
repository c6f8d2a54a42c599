#if !canImport(Darwin)
  internal import Kith

  /// Turns a store's events into notifications. It keeps no object of the class alive.
  struct ChangeNotifier: Sendable {
    /// Counted from the first change, so that a steady stream is announced too.
    private static let coalescingTime = Duration.milliseconds(50)

    let backend: any StoreBackend
    let poster: NotificationPoster
    let coalesce: @Sendable () async -> Void

    @Sendable static func coalesce() async { try? await Task.sleep(for: coalescingTime) }

    /// Runs until cancelled, or until the store is closed. The program read nothing before
    /// `changes` began and `account` was noted.
    func run(_ changes: StoreChanges?, since account: AccountID?) async {
      await withDiscardingTaskGroup { group in
        group.addTask { await backend.run() }
        group.addTask { await tellOfIdentity(since: account) }
        group.addTask { await tell(changes) }
      }
    }

    private func tell(_ changes: StoreChanges?) async {
      await tellOfOldRefusals()
      guard let changes else { return }
      for await first in changes {
        await coalesce()
        for notice in Notice.joining([first] + changes.takeWaiting()) {
          await poster.post(notice)
          if notice.reason != NSUbiquitousKeyValueStoreServerChange { take(refusalsOf: notice) }
        }
      }
    }

    private func tellOfOldRefusals() async {
      let refusals = backend.refusals
      guard let last = refusals.last else { return }
      for (reason, number) in [
        (KeyValueStore.Refusal.Reason.initialSync, NSUbiquitousKeyValueStoreInitialSyncChange),
        (.quota, NSUbiquitousKeyValueStoreQuotaViolationChange),
      ] {
        let keys = refusals.filter { $0.reason == reason }.flatMap(\.writes)
          .map(\.key)
        guard !keys.isEmpty else { continue }
        await poster.post(Notice(reason: number, keys: Set(keys).sorted().map(\.text)))
      }
      backend.takeRefusals(through: last.number)
    }

    /// Removes the refusals just announced: Apple's class cannot ask for them, and their number is
    /// limited.
    private func take(refusalsOf notice: Notice) {
      let keys = Set(notice.keys.map { KeyValueStore.Key($0) })
      let told = backend.refusals.prefix {
        $0.writes.allSatisfy { keys.contains($0.key) }
      }
      if let last = told.last { backend.takeRefusals(through: last.number) }
    }

    private func tellOfIdentity(since account: AccountID?) async {
      var last = account
      for await account in backend.accountUpdates {
        if last != account { await poster.postIdentityChange() }
        last = account
      }
    }
  }
#endif
