internal import KithCore

/// The local stores of a directory in which nobody is signed in and nothing was written. Reading
/// makes no device.
package struct UnwrittenStores: NodeAccess {
  private let directory: String

  package init(directory: String) {
    self.directory = directory
  }

  package func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    switch call {
    case .values(let store, _):
      _ = try Node.checked(store, .standard)
      return .shown([], isLacking: false)
    case .status:
      var status = NodeStatus(account: nil, device: nil)
      status.directory = directory
      status.clock.isSynchronised = SystemClock.isSynchronised
      return .status(try status.json)
    case .dependents: return .devices([])
    case .usage: return .usage(Usage(bytes: 0, keys: 0, policy: .standard))
    case .hidden: return .hidden([])
    case .refusals: return .refusals([])
    case .history, .undo: return .history([])
    case .acceptLoss: return .done
    default:
      throw KithError(
        .missing, "Nobody is signed in here, and nothing was written yet.", path: directory)
    }
  }
}
