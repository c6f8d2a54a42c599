#if !canImport(Darwin)
  internal import Kith

  /// Turns what happens to a store into notifications. It knows no object of the class but those
  /// that are alive, so it keeps none alive.
  struct Server: Sendable {
    let backing: any Backing
    let poster: Poster

    /// Works until cancelled, or until the store is closed.
    ///
    /// - Parameters:
    ///   - changes: What came from outside, from before the program could read.
    ///   - account: Who was signed in then.
    func run(
      _ changes: any AsyncSequence<Change, Never> & Sendable, since account: AccountID?
    ) async {
      await withDiscardingTaskGroup { group in
        group.addTask { await backing.run() }
        group.addTask { await tellOfIdentity(since: account) }
        group.addTask { await tell(changes) }
      }
    }

    private func tell(_ changes: any AsyncSequence<Change, Never> & Sendable) async {
      await tellOfOldRefusals()
      for await change in changes {
        let notice = Notice(change)
        await poster.post(notice)
        if change.reason != .serverChange { take(refusalsOf: notice) }
      }
    }

    /// What was refused before the process began, or before anybody could be told.
    private func tellOfOldRefusals() async {
      let refusals = backing.refusals
      guard let last = refusals.last else { return }
      for (reason, number) in [
        (RefusedTransaction.Reason.initialSync, NSUbiquitousKeyValueStoreInitialSyncChange),
        (.quota, NSUbiquitousKeyValueStoreQuotaViolationChange),
      ] {
        let keys = refusals.filter { $0.reason == reason }.flatMap(\.writes).map { Key($0.key) }
        guard !keys.isEmpty else { continue }
        await poster.post(Notice(reason: number, keys: Set(keys).sorted().map(\.text)))
      }
      backing.takeRefusals(through: last.number)
    }

    /// Forgets the refusals whose keys the program has just heard of; Apple's class has no way to
    /// ask for them, and only so many are kept.
    private func take(refusalsOf notice: Notice) {
      let keys = Set(notice.keys.map { Key($0) })
      let told = backing.refusals.prefix { $0.writes.allSatisfy { keys.contains(Key($0.key)) } }
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
