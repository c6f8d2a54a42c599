internal import KithCore

/// Which devices have what this one wrote.
public struct SyncReport: Sendable, Hashable {
  /// Devices known to have everything that this device published in the store, by id.
  public var complete: [DeviceID]
  /// Devices not known to have it, by id.
  public var incomplete: [DeviceID]
  /// Whether writes wait here for a peer to be published to.
  public var hasUnpublishedWrites: Bool

  /// Whether every device of the account has everything.
  public var isComplete: Bool { incomplete.isEmpty && !hasUnpublishedWrites }
}

extension SyncReport {
  /// Which devices have what this one wrote to a store, as its replica knows.
  init(of store: StoreIdentifier, _ replica: Replica) {
    hasUnpublishedWrites = replica.hasUnpublished(store)
    let holders = replica.holders(of: store).sorted { $0.key < $1.key }
    complete = hasUnpublishedWrites ? [] : holders.filter(\.value).map(\.key)
    incomplete =
      hasUnpublishedWrites ? holders.map(\.key) : holders.filter { !$0.value }.map(\.key)
  }
}

extension KeyValueStore {
  /// Makes everything durable and waits until all other devices have it, or the time is over. Not
  /// having reached all devices is no error: the report says which lack what.
  ///
  /// - Throws: ``KithError`` with a storage code, or `cancelled`.
  public func synchronize(timeout: Duration = .seconds(5)) async throws(KithError) -> SyncReport {
    try flush()
    await backing.waitUntilComplete(identifier, timeout: timeout)
    if Task.isCancelled { throw KithError(.cancelled, "The wait was cancelled.") }
    return syncReport
  }

  /// Which devices have what this one wrote, as far as is known now.
  ///
  /// - Complexity: O(*d*) in the devices of the account.
  public var syncReport: SyncReport { backing.syncReport(of: identifier) }
}
