internal import KithCore
internal import KithStorage
internal import Logging
internal import Synchronization

extension AccountsDirectory {
  /// How long a node may take to give back the local stores, or to serve its control socket.
  static let longestWait = Duration.seconds(10)

  /// Hands the writes that were made while nobody was signed in to an account. A write that the
  /// account took or refused (``KeyValueStore/refusals``) is then removed from the local stores. No
  /// other process can open them until this returns, so no write is handed to two accounts. No
  /// write is handed to one account twice either: the account remembers how far it took until the
  /// local stores are emptied.
  ///
  /// - Parameters:
  ///   - wait: How long to wait for another process that has the local stores open.
  ///   - account: Returns the service that has the account's device. It is called only if there are
  ///     writes to hand over.
  /// - Returns: The keys whose writes lost, by store.
  /// - Throws: ``KithError`` with `inUse` if another process keeps the local stores open, or the
  ///   error that keeps the account from taking the writes. The writes that it took before are not
  ///   handed over again.
  ///   account from taking them; what it has taken by then is not handed over again.
  @discardableResult
  func handOver(
    waiting wait: Duration = .zero, to account: () throws(KithError) -> any StoreService
  ) throws(KithError) -> [StoreIdentifier: Set<Key>] {
    guard DeviceDirectory.holdsDevice(local) else { return [:] }
    let device = try openLocal(waiting: wait)
    defer { try? device.close() }
    var superseded: [StoreIdentifier: Set<Key>] = [:]
    var recipient: (any StoreService)?
    for (store, stored) in try Storage.load(device).stores.sorted(by: { $0.key < $1.key }) {
      let drafts = stored.draftedWrites
      guard !drafts.isEmpty else { continue }
      let chosen: any StoreService
      if let recipient { chosen = recipient } else { chosen = try account() }
      recipient = chosen
      superseded[store] = try chosen.adopt(store, stored.policy, drafts.map(\.write))
      do throws(StorageError) {
        try device.storage.commit(drafts.map { .removeDraft(store, $0.ordinal) })
      } catch {
        throw KithError(error)
      }
      _ = try chosen.adopt(store, stored.policy, [])
    }
    return superseded
  }

  /// Opens the local stores' device, once the process that has it open has given it back.
  func openLocal(waiting wait: Duration) throws(KithError) -> OpenDevice {
    let turn = DirectoryTurn(local, within: wait)
    while true {
      do throws(KithError) {
        return try Storage.open(local, nil)
      } catch {
        guard error.code == .inUse, turn.wait() else { throw error }
      }
    }
  }
}

extension Node {
  /// Notes that the local stores are empty, also if the process died before it could do so.
  fileprivate func endAdoption() throws(KithError) {
    for store in engine.read({ $0.adoptingStores }) { _ = try engine.adopt(store, []) }
  }
}

extension Accounts {
  /// The errors that keep local stores from being handed over for a while only.
  static let passingTroubles: Set<KithError.Code> = [
    .inUse, .diskFull, .readOnly, .inputOutput, .notRunning, .timedOut, .control, .closed,
  ]
  /// The errors that another process ends soon: its turn with the local stores, or its start.
  private static let shortTroubles: Set<KithError.Code> = [.inUse, .notRunning]
  /// How long a disk is left alone after it took no writes.
  private static let adoptionPause = Duration.seconds(5)
  /// How long another process's turn is waited for, by ``run()``.
  private static let shortPause = Duration.milliseconds(500)

  /// Hands the writes that were made while nobody was signed in to the account that now is. If
  /// another process has the local stores open, or a disk takes no writes, the writes are owed and
  /// handed over later.
  ///
  /// - Returns: The keys whose writes lost, by store.
  @discardableResult
  func adopt(_ state: inout State) -> [StoreIdentifier: Set<Key>] {
    let before = state.owed
    state.owed = nil
    guard state.seat.place != .signedOut else { return [:] }
    let seat = state.seat
    do throws(KithError) {
      let superseded = try directory.handOver { () throws(KithError) in seat.service }
      if case .own(let node) = seat.kind { try node.endAdoption() }
      return superseded
    } catch {
      let isShort = Self.shortTroubles.contains(error.code)
      state.owed = Debt(
        error: error,
        retryAt: Self.passingTroubles.contains(error.code)
          ? .now + (isShort ? Self.shortPause : Self.adoptionPause) : nil)
      // Once, however often it is tried again.
      if !isShort && before?.retryAt == nil {
        configuration.logger.error(
          "what was written without an account is not the account's yet",
          metadata: ["code": "\(error.code)"])
      }
      return [:]
    }
  }

  /// Tries again what is owed, if the time has come; whether it is settled with that.
  func adoptIfOwed(_ state: inout State, atOnce: Bool = false) -> Bool {
    guard let time = state.owed?.retryAt, atOnce || time <= .now else { return false }
    adopt(&state)
    return state.owed == nil
  }

  /// Blocks until what was written while nobody was signed in is the account's. It waits for another
  /// process's turn with the local stores, and for nothing else.
  ///
  /// - Throws: ``KithError`` that says why it is not.
  func settleDebt() throws(KithError) {
    let turn = DirectoryTurn(directory.local, within: AccountsDirectory.longestWait)
    while true {
      let debt = state.withLock { state in
        _ = adoptIfOwed(&state, atOnce: true)
        return state.owed
      }
      guard let debt else { return }
      guard Self.shortTroubles.contains(debt.error.code), turn.wait() else {
        throw .owed(debt.error)
      }
    }
  }
}

extension KithError {
  /// Writes made while nobody was signed in are not the account's yet.
  static func owed(_ error: KithError) -> KithError {
    var owed = error
    owed.message =
      "What was written here while nobody was signed in is not the account's yet: \(error.message) "
      + "It becomes the account's once that is over; until then nobody can sign out or in to another "
      + "account here."
    return owed
  }
}
