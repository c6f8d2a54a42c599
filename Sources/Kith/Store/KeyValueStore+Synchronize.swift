internal import KithCore

/// The devices that have, and that lack, the writes of this device.
public struct SyncReport: Codable, Sendable, Hashable {
  /// Devices known to have everything that this device published in the store, by id.
  public var complete: [DeviceID]
  /// Devices not known to have it, by id.
  public var incomplete: [DeviceID]
  /// Whether drafts wait for a peer.
  public var hasUnpublishedWrites: Bool

  /// Whether every device of the account has everything.
  public var isComplete: Bool { incomplete.isEmpty && !hasUnpublishedWrites }
}

extension SyncReport {
  /// Makes the report for a store, from the state of its replica.
  init(of store: StoreIdentifier, _ replica: Replica) {
    hasUnpublishedWrites = replica.hasUnpublished(store)
    let holders = replica.holders(of: store).sorted { $0.key < $1.key }
    complete = hasUnpublishedWrites ? [] : holders.filter(\.value).map(\.key)
    incomplete =
      hasUnpublishedWrites ? holders.map(\.key) : holders.filter { !$0.value }.map(\.key)
  }
}

extension KeyValueStore {
  /// Makes all writes durable, then waits until all other devices have them or the timeout passes.
  ///
  /// A timeout is not an error: the report names the devices that lack writes.
  ///
  /// ```swift
  /// let report = try await store.synchronize(timeout: .seconds(10))
  /// if !report.isComplete { print("\(report.incomplete.count) devices are behind") }
  /// ```
  ///
  /// - Throws: ``KithError`` with a storage code, or `cancelled`.
  public func synchronize(timeout: Duration = .seconds(5)) async throws(KithError) -> SyncReport {
    try await BlockingThread.run { () throws(KithError) in try self.flush() }
    await service.waitUntilComplete(identifier, timeout: timeout)
    if Task.isCancelled { throw KithError(.cancelled, "The wait was cancelled.") }
    return syncReport
  }

  /// The devices that have the writes of this one, as far as is known now.
  ///
  /// - Complexity: O(*d*) in the devices of the account.
  public var syncReport: SyncReport { service.syncReport(of: identifier) }
}
