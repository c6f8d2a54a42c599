public import FoundationEssentials
internal import KithCore

/// The devices that have, and that lack, this device's writes.
public struct SyncReport: Codable, Sendable, Hashable {
  /// Devices known to have all of this device's writes in the store, by id.
  public var complete: [DeviceID]
  /// All other devices of the account, by id.
  public var incomplete: [DeviceID]
  /// Whether drafts wait to be published. If so, no device is complete.
  public var hasUnpublishedWrites: Bool
  /// The carriers that hold all that this device has of the store, as a listing showed. The other
  /// devices get it there, when they look.
  public var carriers: [Carrier] = []

  package init(complete: [DeviceID], incomplete: [DeviceID], hasUnpublishedWrites: Bool) {
    self.complete = complete
    self.incomplete = incomplete
    self.hasUnpublishedWrites = hasUnpublishedWrites
  }

  /// Whether every device of the account has all of this device's writes in the store.
  public var isComplete: Bool { incomplete.isEmpty && !hasUnpublishedWrites }

  /// A carrier that holds all of this device's writes in the store.
  public struct Carrier: Codable, Sendable, Hashable {
    /// Its path or URL.
    public var location: String
    package var heldSinceMilliseconds: UInt64

    /// When its listing showed that.
    public var heldSince: Date { Date(milliseconds: heldSinceMilliseconds) }
  }
}

extension SyncReport {
  init(of store: StoreIdentifier, _ replica: Replica, _ settings: [CarrierSettings] = []) {
    hasUnpublishedWrites = replica.hasUnpublished(store)
    let holders = replica.holders(of: store).sorted { $0.key < $1.key }
    complete = hasUnpublishedWrites ? [] : holders.filter(\.value).map(\.key)
    incomplete =
      hasUnpublishedWrites ? holders.map(\.key) : holders.filter { !$0.value }.map(\.key)
    carriers = settings.compactMap { carrier in
      replica.heldSince(on: carrier.id, store).map {
        Carrier(location: carrier.location, heldSinceMilliseconds: $0)
      }
    }
  }
}

extension KeyValueStore {
  /// How often another program's node is asked that could not answer.
  private static let askingInterval = Duration.milliseconds(200)

  /// Makes all writes durable, then waits until all other devices have them, or the carriers and all
  /// connected devices, or until the timeout passes. If `devices` is given, it waits until so many
  /// other devices have them.
  ///
  /// It ends early if waiting cannot help: this device was revoked, or the account has fewer
  /// devices.
  ///
  /// ```swift
  /// let report = try await store.waitUntilSynced(timeout: .seconds(10))
  /// if !report.isComplete { print("\(report.incomplete.count) devices are behind") }
  /// ```
  ///
  /// If another program's node ends meanwhile, or is too busy to answer, it asks again.
  ///
  /// - Throws: ``KithError`` as ``flush()`` does, or with `cancelled`. A timeout is no error.
  public func waitUntilSynced(
    timeout: Duration = .seconds(5), devices: Int? = nil
  ) async throws(KithError) -> SyncReport {
    let end = ContinuousClock.now + timeout
    repeat {
      // Also brings the next service, if the node has ended.
      try await BlockingThread.run { () throws(KithError) in try self.flush() }
      do throws(KithError) {
        try await service.waitUntilComplete(
          identifier, devices: devices, timeout: max(.zero, end - .now))
        break
      } catch {
        guard Accounts.passingTroubles.contains(error.code) else { throw error }
      }
      try? await Task.sleep(until: min(end, .now + Self.askingInterval), clock: .continuous)
    } while ContinuousClock.now < end && !Task.isCancelled
    if Task.isCancelled { throw KithError(.cancelled, "The wait was cancelled.") }
    let limit = max(LocalLimits.lateReport, min(LocalLimits.request, end - .now))
    return try await BlockingThread.run { () throws(KithError) in
      try self.syncReport(within: limit)
    }
  }

  /// The devices known to have, or not to have, this device's writes.
  ///
  /// - Throws: ``KithError`` as ``usage`` does.
  /// - Complexity: O(*d*) in the account's devices.
  public var syncReport: SyncReport {
    get throws(KithError) { try syncReport(within: LocalLimits.request) }
  }

  private func syncReport(within limit: Duration) throws(KithError) -> SyncReport {
    try withService { service throws(KithError) in
      try service.syncReport(of: identifier, within: limit)
    }
  }
}
