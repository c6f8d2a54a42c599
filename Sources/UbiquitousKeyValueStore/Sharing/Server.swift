#if !canImport(Darwin)
  internal import Kith

  /// Turns a store's events into notifications. It keeps no object of the class alive.
  struct Server: Sendable {
    /// The time for gathering changes, counted from the first one, so that a steady stream is
    /// told too.
    private static let gatheringTime = Duration.milliseconds(50)

    let backing: any Backing
    let poster: Poster
    /// Waits while changes are gathered for one notification.
    let gather: @Sendable () async -> Void

    /// Waits while changes are gathered, or until the task is cancelled.
    @Sendable static func gather() async { try? await Task.sleep(for: gatheringTime) }

    /// Runs until cancelled, or until the store is closed.
    ///
    /// - Parameters:
    ///   - changes: The changes from outside, subscribed to before the program could read.
    ///   - account: The account that was signed in then.
    func run(_ changes: StoreChanges?, since account: AccountID?) async {
      await withDiscardingTaskGroup { group in
        group.addTask { await backing.run() }
        group.addTask { await tellOfIdentity(since: account) }
        group.addTask { await tell(changes) }
      }
    }

    private func tell(_ changes: StoreChanges?) async {
      await tellOfOldRefusals()
      guard let changes else { return }
      for await first in changes {
        await gather()
        for notice in Notice.joining([first] + changes.takeWaiting()) {
          await poster.post(notice)
          if notice.reason != NSUbiquitousKeyValueStoreServerChange { take(refusalsOf: notice) }
        }
      }
    }

    /// Announces refusals from before the process began.
    private func tellOfOldRefusals() async {
      let refusals = backing.refusals
      guard let last = refusals.last else { return }
      for (reason, number) in [
        (KeyValueStore.Refusal.Reason.initialSync, NSUbiquitousKeyValueStoreInitialSyncChange),
        (.quota, NSUbiquitousKeyValueStoreQuotaViolationChange),
      ] {
        let keys = refusals.filter { $0.reason == reason }.flatMap(\.writes).map {
          KeyValueStore.Key($0.key)
        }
        guard !keys.isEmpty else { continue }
        await poster.post(Notice(reason: number, keys: Set(keys).sorted().map(\.text)))
      }
      backing.takeRefusals(through: last.number)
    }

    /// Removes the refusals just announced: Apple's class cannot ask for them, and their number is
    /// limited.
    private func take(refusalsOf notice: Notice) {
      let keys = Set(notice.keys.map { KeyValueStore.Key($0) })
      let told = backing.refusals.prefix {
        $0.writes.allSatisfy { keys.contains(KeyValueStore.Key($0.key)) }
      }
      if let last = told.last { backing.takeRefusals(through: last.number) }
    }

    private func tellOfIdentity(since account: AccountID?) async {
      var last = account
      for await account in backing.accountUpdates {
        if last != account { await poster.postIdentityChange() }
        last = account
      }
    }
  }
#endif
