internal import KithCore
internal import KithStorage

/// The stores of another process's node.
enum Attachment {
  /// The account of the node that serves a directory; nil where none answers within
  /// ``AttachedLimits/request``.
  static func report(_ directory: String) -> AccountID? {
    var request = ControlRequest(id: 1)
    request.operation = .status
    let path = DeviceDirectory.controlSocketPath(directory)
    let deadline = SuspendingClock.now.advanced(by: AttachedLimits.request)
    guard let (stream, response) = try? ControlStream.open(path, request, until: deadline) else {
      return nil
    }
    stream.close()
    return response.status.flatMap { try? AccountID(control: $0.account) }
  }

  /// Attaches to a store, for a view of its own.
  static func open(
    _ store: StoreIdentifier, _ policy: Policy, in directory: String,
    onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> (any StoreBacking, StoreView) {
    let attached = try AttachedStore.attach(
      directory: directory, store: store, policy: policy, onEnd: { _ in onEnd() })
    return (attached, attached.view)
  }

  /// Attaches to a store, for a view that showed another one.
  static func open(
    _ view: StoreView, _ policy: Policy, reason: Change.Reason, in directory: String,
    onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> any StoreBacking {
    try AttachedStore.attach(
      directory: directory, store: view.identifier, policy: policy, view: view,
      reason: ChangeReason(reason) ?? .serverChange, onEnd: { _ in onEnd() })
  }

  /// Whether the node has ended that a store is attached to.
  static func hasEnded(_ stores: [KeyValueStore]) -> Bool {
    stores.contains { ($0.backing as? AttachedStore)?.hasEnded == true }
  }

  /// Lets the node answer what was written, and takes no more.
  static func stop(_ stores: [KeyValueStore]) {
    for store in stores { (store.backing as? AttachedStore)?.stop() }
  }

  /// What a node that has ended did not answer: to be written again, and settled.
  static func pending(_ store: KeyValueStore) -> [PendingWrite] {
    (store.backing as? AttachedStore)?.takePending() ?? []
  }

  /// Lets the node make durable what was written, and leaves it.
  ///
  /// - Throws: ``KithError`` with the first reason why something was not made durable.
  static func close(_ stores: [KeyValueStore]) throws(KithError) {
    var problem: KithError?
    for store in stores {
      guard let attached = store.backing as? AttachedStore else { continue }
      do throws(KithError) {
        try attached.flush()
      } catch {
        problem = problem ?? error
      }
      attached.close()
    }
    if let problem { throw problem }
  }
}
