internal import KithCore

/// The local stores of a directory in which nobody is signed in and nothing was written yet: there is
/// no device to ask, and looking makes none.
package struct UnwrittenStores: StoreAccess {
  private let directory: String

  /// The local stores that would lie in a directory.
  package init(directory: String) {
    self.directory = directory
  }

  package func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? {
    _ = try Node.checked(store, .standard)
    return nil
  }

  package func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    _ = try Node.checked(store, .standard)
    return [:]
  }

  package func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError) { throw nobody }

  package func report() async throws(KithError) -> NodeReport {
    NodeReport(
      account: "", device: "", directory: directory, isRunning: false, listening: [],
      isClockSynchronised: SystemClock.isSynchronised, problems: [],
      devices: [], peers: [], stores: [])
  }

  package func usage(of store: String) async throws(KithError) -> UsageReport {
    UsageReport(Usage(bytes: 0, keys: 0, policy: .standard))
  }

  package func hiddenEntries(in store: String) async throws(KithError) -> [HiddenValue] { [] }

  package func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [RefusedTransaction] { [] }

  package func acceptLoss(in store: String) async throws(KithError) {}

  package func synchronize(
    _ store: String, timeout: Duration
  ) async throws(KithError) -> SyncReport { throw nobody }

  package func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (Change) async -> Void
  ) async throws(KithError) { throw nobody }

  package func deviceReports() async throws(KithError) -> [DeviceReport] { [] }

  package func acceptTime() async throws(KithError) { throw nobody }

  package func rename(_ device: DeviceID, to name: String) async throws(KithError) { throw nobody }

  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) { throw nobody }

  package func invite(
    addresses: [String],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate { throw nobody }

  package func inviteByCode(
    addresses: [String],
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate { throw nobody }

  private var nobody: KithError {
    KithError(
      .missing, "Nobody is signed in here, and nothing was written yet.", path: directory)
  }
}
