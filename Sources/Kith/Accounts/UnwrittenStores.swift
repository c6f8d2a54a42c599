internal import KithCore

/// The local stores of a directory in which nobody is signed in and nothing was written yet: there is
/// no device to ask, and looking makes none.
package struct UnwrittenStores: NodeAccess {
  private let directory: String

  /// The local stores that would lie in a directory.
  package init(directory: String) {
    self.directory = directory
  }

  package func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    switch call {
    case .values(let store):
      _ = try Node.checked(store, .standard)
      return .values([])
    case .status:
      return .status(
        try NodeReport(
          account: "", device: "", directory: directory, isRunning: false, listening: [],
          isClockSynchronised: SystemClock.isSynchronised, problems: [],
          devices: [], peers: [], stores: []
        ).json)
    case .devices: return .devices(try [DeviceReport]().json)
    case .usage: return .usage(UsageReport(Usage(bytes: 0, keys: 0, policy: .standard)))
    case .hidden: return .hidden([])
    case .refusals: return .refusals([])
    case .acceptLoss: return .done
    default:
      throw KithError(
        .missing, "Nobody is signed in here, and nothing was written yet.", path: directory)
    }
  }
}
