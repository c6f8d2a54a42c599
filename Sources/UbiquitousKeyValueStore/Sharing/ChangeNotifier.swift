#if !canImport(Darwin)
  internal import Dispatch
  internal import Foundation
  internal import Kith
  internal import Synchronization

  /// Turns a store's events into notifications. It keeps no object of the class alive.
  struct ChangeNotifier: Sendable {
    /// Counted from the first change, so that a steady stream is announced too.
    private static let coalescingTime = Duration.milliseconds(50)

    let backend: any StoreBackend
    let poster: NotificationPoster
    let coalesce: @Sendable () async -> Void
    /// For questions, which may block for the disk or for another program's node.
    private let questions = DispatchQueue(label: "kith.ubiquitous-key-value-store.refusals")

    init(
      backend: any StoreBackend, poster: NotificationPoster,
      coalesce: @escaping @Sendable () async -> Void
    ) {
      (self.backend, self.poster, self.coalesce) = (backend, poster, coalesce)
    }

    @Sendable static func coalesce() async { try? await Task.sleep(for: coalescingTime) }

    /// Runs until cancelled, or until the store is closed. The program read nothing before
    /// `changes` began, each of which raises `news`, and `account` was noted.
    func run(_ changes: StoreChanges?, _ news: Signal, since account: AccountID?) async {
      let current = Current(account)
      await withDiscardingTaskGroup { group in
        group.addTask { await backend.run() }
        group.addTask {
          for await account in backend.accountUpdates {
            current.account.withLock { $0 = account }
            news.raise()
          }
        }
        group.addTask { await tell(changes, since: account, news, current) }
      }
    }

    private final class Current: Sendable {
      let account: Mutex<AccountID?>
      init(_ account: AccountID?) { self.account = Mutex(account) }
    }

    /// Posts everything in one order. A change of the account comes after the changes of the store
    /// that it brought: programs read the store again at it, and must have united their values with
    /// the store's at the first sync.
    private func tell(
      _ changes: StoreChanges?, since account: AccountID?, _ news: Signal, _ current: Current
    ) async {
      await tellOfOldRefusals()
      var last = account
      for await () in news {
        // Before the changes are taken: by now, those that the account brought wait.
        let account = current.account.withLock { $0 }
        if let changes, changes.isReady {
          if changes.hasEnded { return }
          await coalesce()
          let notices = Notice.joining(changes.takeWaiting())
          for notice in notices { await poster.post(notice) }
          // After all: a refusal takes those before it along.
          for notice in notices
          where notice.reason == NSUbiquitousKeyValueStoreQuotaViolationChange {
            await take(refusalsOf: notice)
          }
        }
        if account != last { await poster.postIdentityChange() }
        last = account
      }
    }

    private func tellOfOldRefusals() async {
      let refusals = await questions.run { backend.refusals }
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
      await questions.run { backend.takeRefusals(through: last.number) }
    }

    /// Removes the refusals just announced: Apple's class cannot ask for them, and their number is
    /// limited. Those of a first sync stay for `kith unshown` until the program starts again: if it
    /// read the store at the first sync, nothing else has its values. But a later refusal takes all
    /// before it along, which were announced before.
    private func take(refusalsOf notice: Notice) async {
      let keys = Set(notice.keys.map { KeyValueStore.Key($0) })
      await questions.run {
        func isPosted(_ refusal: KeyValueStore.Refusal) -> Bool {
          refusal.reason == .quota && refusal.writes.allSatisfy { keys.contains($0.key) }
        }
        let posted = backend.refusals.drop { !isPosted($0) }.prefix(while: isPosted)
        if let last = posted.last { backend.takeRefusals(through: last.number) }
      }
    }
  }

  struct Notice: Equatable, Sendable {
    /// One of Apple's constants.
    var reason: Int
    /// In order.
    var keys: [String]
  }

  extension Notice {
    /// Makes one notice for each reason, in order of first occurrence, but a first sync before a
    /// change of the account: programs unite their values with the store's at the one, and read the
    /// store again at the other. Its keys are those of changed values and of lost writes.
    static func joining(_ changes: [KeyValueStore.Change]) -> [Notice] {
      var reasons: [Int] = []
      var keys: [Int: Set<KeyValueStore.Key>] = [:]
      for change in changes {
        let reason = reason(change.reason)
        if keys[reason] == nil { reasons.append(reason) }
        keys[reason, default: []].formUnion(change.keys + change.superseded)
      }
      if let account = reasons.firstIndex(of: NSUbiquitousKeyValueStoreAccountChange),
        let sync = reasons.firstIndex(of: NSUbiquitousKeyValueStoreInitialSyncChange),
        account < sync
      {
        reasons.swapAt(account, sync)
      }
      return reasons.map { reason in
        Notice(reason: reason, keys: (keys[reason] ?? []).sorted().map(\.text))
      }
    }

    private static func reason(_ reason: KeyValueStore.ChangeReason) -> Int {
      switch reason {
      case .ownWrite, .externalChange: NSUbiquitousKeyValueStoreServerChange
      case .initialSyncChange: NSUbiquitousKeyValueStoreInitialSyncChange
      case .quotaViolationChange: NSUbiquitousKeyValueStoreQuotaViolationChange
      case .accountChange: NSUbiquitousKeyValueStoreAccountChange
      }
    }
  }

  /// Posts notifications one after the other, on its own queue.
  ///
  /// On Linux an observer with `queue: .main` blocks the poster until the main thread has time. So
  /// it holds no lock, and `synchronize()` never waits for it.
  final class NotificationPoster: Sendable {
    /// Further keys are only logged.
    static let refusedKeysLimit = 1_024

    private struct Weak {
      weak var object: NSUbiquitousKeyValueStore?
    }

    private struct Refused {
      var keys: [String] = []
      var isScheduled = false
    }

    private let queue = DispatchQueue(label: "kith.ubiquitous-key-value-store.notifications")
    /// In the order in which they were made.
    private let objects = Mutex<[Weak]>([])
    private let refused = Mutex(Refused())

    /// Adds an object on the data, held weakly, which gets the notifications.
    func add(_ object: NSUbiquitousKeyValueStore) {
      objects.withLock { objects in
        objects.removeAll { $0.object == nil }
        objects.append(Weak(object: object))
      }
    }

    /// Returns once all observers were called.
    func post(_ notice: Notice) async {
      await queue.run { self.postNow(notice) }
    }

    /// Returns once all observers were called.
    func postIdentityChange() async {
      await queue.run {
        NotificationCenter.default.post(name: .NSUbiquityIdentityDidChange, object: nil)
      }
    }

    /// Posts soon that a write was refused, joined with others that wait.
    func refuse(_ key: String) {
      let isFirst = refused.withLock { refused in
        if refused.keys.count < Self.refusedKeysLimit, !refused.keys.contains(key) {
          refused.keys.append(key)
        }
        defer { refused.isScheduled = true }
        return !refused.isScheduled
      }
      guard isFirst else { return }
      queue.async { [self] in
        let keys = refused.withLock { refused in
          defer { refused = Refused() }
          return refused.keys
        }
        postNow(Notice(reason: NSUbiquitousKeyValueStoreQuotaViolationChange, keys: keys))
      }
    }

    private func postNow(_ notice: Notice) {
      for object in objects.withLock({ $0.compactMap(\.object) }) {
        NotificationCenter.default.post(
          name: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: object,
          userInfo: [
            NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: notice.reason),
            NSUbiquitousKeyValueStoreChangedKeysKey: notice.keys,
          ])
      }
    }
  }
#endif
