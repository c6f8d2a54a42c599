internal import FoundationEssentials
package import KithCore
internal import KithStorage

extension AccountsDirectory {
  /// For a process to release the local stores, or to serve its control socket.
  static let longestWait = Duration.seconds(10)

  /// Hands the local writes, made while nobody was signed in, to an account. Removes those that it
  /// took or refused (``KeyValueStore/refusals``), and the local history. Rows that cannot be read
  /// stay, and the local stores tell of them as damaged.
  ///
  /// No write reaches two accounts: no other process can open the local stores meanwhile. No write
  /// reaches one account twice, also after an error: the account remembers how far it took until
  /// the local stores are empty. `account` is called only if there are writes.
  ///
  /// A store that the account cannot take stays, and keeps no other from being taken.
  @discardableResult
  func handOver(
    waiting wait: Duration = .zero, to account: () throws(KithError) -> any StoreService
  ) throws(KithError) -> HandedOver {
    guard try KithError.mapping(DeviceDirectory.findsDevice(local)) else { return HandedOver() }
    let device = try openLocal(waiting: wait)
    defer { try? device.close() }
    return try DeviceStorage.load(device).handOver(from: device.storage, to: account)
  }

  /// Waits for another process that has the local stores open.
  func openLocal(waiting wait: Duration) throws(KithError) -> OpenDevice {
    let release = DirectoryWait(local, within: wait)
    while true {
      do throws(KithError) {
        return try DeviceStorage.open(local, nil)
      } catch {
        guard error.code == .inUse, release.wait() else { throw error }
      }
    }
  }
}

/// The outcome of handing over the local stores.
struct HandedOver {
  /// The keys whose writes lost, of each store that was taken.
  var superseded: [StoreIdentifier: Set<Key>] = [:]
  /// Why the account cannot take a store, which stays.
  var left: [StoreIdentifier: KithError] = [:]

  /// The error for all stores that stay; nil: none does.
  var error: KithError? {
    guard let first = left.min(by: { $0.key < $1.key }) else { return nil }
    let names = left.keys.sorted().prefix(3).map(\.rawValue).joined(separator: ", ")
    let more = left.count > 3 ? " and \(left.count - 3) more" : ""
    var error = first.value
    error.message =
      "The account did not take the writes made here while nobody was signed in to \(names)\(more): "
      + "\(error.sentence) It has the writes to other stores. These stay here, and show after signing "
      + "out."
    return error
  }
}

extension Snapshot {
  /// As `AccountsDirectory.handOver`, for local stores that were loaded from an open storage.
  func handOver(
    from storage: any ReplicaStorage, to account: () throws(KithError) -> any StoreService
  ) throws(KithError) -> HandedOver {
    var outcome = HandedOver()
    var recipient: (any StoreService)?
    for (store, stored) in stores.sorted(by: { $0.key < $1.key }) {
      let writes = stored.draftedWrites
      guard !writes.isEmpty else { continue }
      let chosen: any StoreService
      if let recipient { chosen = recipient } else { chosen = try account() }
      recipient = chosen
      do throws(KithError) {
        outcome.superseded[store] = try chosen.adopt(store, stored.policy, writes)
      } catch {
        // Of others it is unknown whether the account has the writes, or the next store fails too.
        guard error.isRefusal || Self.lastingTroubles.contains(error.code) else { throw error }
        outcome.left[store] = error
        continue
      }
      try KithError.mapping(
        storage.commit(
          stored.draftRows.map { .remove(.store(store, .draft($0))) }
            + stored.pastValues.keys.sorted().map { .remove(.store(store, .pastValue($0))) }))
      _ = try chosen.adopt(store, stored.policy, [])
    }
    return outcome
  }

  /// The errors, beside refusals, after which the account took nothing of a store, and never will.
  private static let lastingTroubles: Set<KithError.Code> = [
    .tooManyStores, .invalidPolicy, .revoked,
  ]
}

extension Node {
  /// Ends adoptions whose local stores are empty, also those of a process that died.
  fileprivate func endAdoption(but left: [StoreIdentifier: KithError]) throws(KithError) {
    for store in engine.read({ $0.adoptingStores }) where left[store] == nil {
      _ = try engine.adopt(store, [])
    }
  }
}

extension Accounts {
  /// The errors after which handing over is retried.
  static let passingTroubles: Set<KithError.Code> = [
    .inUse, .diskFull, .readOnly, .inputOutput, .notRunning, .timedOut, .control, .closed,
  ]
  /// The errors that end soon: another process has the local stores open, or starts.
  private static let shortTroubles: Set<KithError.Code> = [.inUse, .notRunning]
  /// The time until a retry after a disk refused writes.
  private static let adoptionPause = Duration.seconds(5)
  /// The time until a retry while another process has the local stores open.
  private static let shortPause = Duration.milliseconds(500)

  /// Has the active device's account, if any, adopt the local writes. If another process has them open, or a
  /// disk refuses writes, the adoption stays pending; if the account cannot take a store, what that
  /// holds stays. Returns the keys whose writes lost.
  @discardableResult
  func adopt(by active: ActiveDevice) -> [StoreIdentifier: Set<Key>] {
    var outcome = HandedOver()
    do throws(KithError) {
      if active.location != .signedOut {
        outcome = try directory.handOver { () throws(KithError) in active.service }
        if case .own(let node) = active.kind { try node.endAdoption(but: outcome.left) }
      }
      if let error = outcome.error { throw error }
      state.withLock { $0.pendingAdoption = nil }
    } catch {
      let isShort = Self.shortTroubles.contains(error.code)
      let pending = PendingAdoption(
        error: outcome.left.isEmpty ? .pendingAdoption(error) : error,
        isFinal: !outcome.left.isEmpty, isShort: isShort,
        retryAt: Self.passingTroubles.contains(error.code)
          ? .now + (isShort ? Self.shortPause : Self.adoptionPause) : nil)
      let before = state.withLock { state in
        defer { state.pendingAdoption = pending }
        return state.pendingAdoption
      }
      // Logged once for all retries.
      if !isShort && before?.retryAt == nil {
        configuration.logger.error(
          "writes made without an account are not in the account yet",
          metadata: ["code": "\(error.code)"])
      }
    }
    return outcome.superseded
  }

  /// Retries a pending adoption, if it is due; returns whether it succeeded.
  func retryPendingAdoption(atOnce: Bool = false) -> Bool {
    let (active, pendingAdoption) = state.withLock { ($0.active, $0.pendingAdoption) }
    guard let time = pendingAdoption?.retryAt, atOnce || time <= .now else { return false }
    adopt(by: active)
    return state.withLock { $0.pendingAdoption == nil }
  }

  /// Blocks until the account has adopted all local writes, or, if `isLeaving`, all that it can. It
  /// waits only while another process has them open; otherwise it throws.
  func finishAdoption(isLeaving: Bool = false) throws(KithError) {
    let release = DirectoryWait(directory.local, within: AccountsDirectory.longestWait)
    while true {
      let pending = switchLock.withLock { _ in
        _ = retryPendingAdoption(atOnce: true)
        return state.withLock { $0.pendingAdoption }
      }
      guard let pending, !(isLeaving && pending.isFinal) else { return }
      guard pending.isShort, release.wait() else { throw pending.error }
    }
  }
}

extension KithError {
  static func pendingAdoption(_ error: KithError) -> KithError {
    var pendingAdoption = error
    pendingAdoption.message =
      "Writes made here while nobody was signed in are not in the account yet: \(error.sentence) "
      + "The account takes them once that is over; until then nobody can sign in to another account "
      + "here"
      + (Accounts.passingTroubles.contains(error.code)
        ? ", or sign out." : ". Signing out shows them again.")
    return pendingAdoption
  }

  /// The message, with a full stop: those of storage have none.
  fileprivate var sentence: String {
    message.last.map { ".!?".contains($0) } == false ? message + "." : message
  }
}

extension Accounts {
  /// The problem that writes made while nobody was signed in are not in the account yet. Nil: they
  /// are, nobody is signed in, or another process has them open at this moment.
  ///
  /// Reads a copy, and changes nothing.
  package static func pendingAdoption(in path: String) -> NodeStatus.Problem? {
    let directory = AccountsDirectory(path: path)
    guard let location = try? directory.location(), location != .signedOut else { return nil }
    do throws(KithError) {
      let stores = try directory.storesWithLocalWrites()
      guard !stores.isEmpty else { return nil }
      throw KithError(
        .notRunning,
        "They are in the local \(stores.count == 1 ? "store" : "stores") "
          + "\(stores.map(\.rawValue).joined(separator: ", ")). If no program is taking them over now, "
          + "kith account sign-in does so, or says what is in the way.")
    } catch {
      guard error.code != .inUse else { return nil }
      return NodeStatus.Problem(.pendingAdoption(error))
    }
  }
}

extension AccountsDirectory {
  /// Ascending.
  fileprivate func storesWithLocalWrites() throws(KithError) -> [StoreIdentifier] {
    guard try KithError.mapping(DeviceDirectory.findsDevice(local)) else { return [] }
    let device = try KithError.mapping(DeviceDirectory.openCopy(of: local))
    defer { try? device.close() }
    return try DeviceStorage.load(device).stores.filter { !$0.value.draftedWrites.isEmpty }
      .map(\.key).sorted()
  }
}
