internal import KithCore
internal import KithStorage
internal import Logging
internal import Synchronization

extension Accounts {
  /// What keeps local stores from being taken for a while only.
  private static let passingTroubles: Set<KithError.Code> = [
    .inUse, .diskFull, .readOnly, .inputOutput,
  ]
  /// How long a disk is left alone after it took no writes.
  private static let adoptionPause = Duration.seconds(5)

  /// Hands what was written while nobody was signed in to the account that is, if this process has
  /// its device open. What the account took, or refused (``KeyValueStore/refusals``), is the local
  /// stores' no more. Where another process has those open, or the disk takes no writes, it is owed and
  /// tried again.
  ///
  /// - Returns: The keys whose writes lost, by store.
  @discardableResult
  func adopt(_ state: inout State) -> [StoreIdentifier: Set<Key>] {
    let wasOwed = state.owesAdoption
    state.owesAdoption = false
    guard case .own(let node) = state.seat.kind, state.seat.place != .signedOut,
      DeviceDirectory.holdsDevice(directory.local)
    else { return [:] }
    do throws(KithError) {
      return try adopt(node)
    } catch {
      state.owesAdoption = Self.passingTroubles.contains(error.code)
      let isInUse = error.code == .inUse
      state.adoptsAgainAt = .now + (isInUse ? .zero : Self.adoptionPause)
      // Once, however often it is tried again.
      if !isInUse && !(wasOwed && state.owesAdoption) {
        configuration.logger.error(
          "what was written without an account is not the account's yet",
          metadata: ["code": "\(error.code)"])
      }
      return [:]
    }
  }

  private func adopt(_ node: Node) throws(KithError) -> [StoreIdentifier: Set<Key>] {
    let local = try Storage.open(directory.local, nil)
    defer { try? local.close() }
    var superseded: [StoreIdentifier: Set<Key>] = [:]
    for (identifier, stored) in try Storage.load(local).stores.sorted(by: { $0.key < $1.key }) {
      let transactions = stored.draftedTransactions
      guard !transactions.isEmpty else { continue }
      let policy = node.engine.read { $0.usage(of: identifier)?.policy } ?? stored.policy
      _ = try node.engine.open(identifier, policy: policy)
      superseded[identifier] = try node.engine.adopt(identifier, transactions.map(\.operations))
      do throws(StorageError) {
        try local.storage.commit(transactions.map { .removeDraft(identifier, $0.ordinal) })
      } catch {
        throw KithError(error)
      }
    }
    return superseded
  }
}
