internal import KithCore
internal import KithCrypto
internal import KithStorage

/// A directory that another process has open, whose node serves its control socket.
struct Attachment {
  let directory: String

  /// The account of the node that serves the directory; nil where none answers.
  var account: AccountID? {
    var request = ControlRequest(id: 1)
    request.operation = .status
    let deadline = SuspendingClock.now.advanced(by: AttachedLimits.request)
    let answered = try? ControlStream.open(
      DeviceDirectory.controlSocketPath(directory), request, until: deadline)
    guard let answered else { return nil }
    answered.stream.close()
    return answered.first.status.flatMap { Digest256(hex: $0.account) }.map { AccountID($0) }
  }

  /// Hands the node what was written to a store while nobody was signed in; it blocks until the node
  /// has made that durable.
  ///
  /// - Returns: The keys whose writes lost.
  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    var request = ControlRequest(id: 1)
    request.operation = .adopt
    request.store = store.rawValue
    request.policy = ControlPolicy(policy)
    request.transactions = writes.map { $0.operations.map { ControlEntry($0) } }
    request.clocks = writes.map(\.clock.rawValue)
    let bytes = try ControlStream.encode(request).readableBytes
    guard bytes <= ControlLimits.lineBytes else {
      throw KithError(
        .control,
        "What was written is more than the node that runs takes at once. Stop it, and start it again.",
        path: directory, actual: bytes, limit: ControlLimits.lineBytes)
    }
    let (stream, first) = try ControlStream.open(
      DeviceDirectory.controlSocketPath(directory), request,
      until: SuspendingClock.now.advanced(by: AttachedLimits.answer))
    stream.close()
    return Set((first.keys ?? []).map { Key($0) })
  }

  /// Whether the node of a store's connection has ended.
  static func hasEnded(_ stores: [KeyValueStore]) -> Bool {
    stores.contains { ($0.backing as? AttachedStore)?.hasEnded == true }
  }

  /// Waits until the node has all that the stores have written, and closes their connections.
  ///
  /// - Returns: What was not answered, by store: to be written to what comes next.
  static func leave(_ stores: [KeyValueStore]) -> [StoreIdentifier: [PendingWrite]] {
    var pending: [StoreIdentifier: [PendingWrite]] = [:]
    for store in stores {
      guard let attached = store.backing as? AttachedStore else { continue }
      attached.stop()
      pending[store.identifier] = attached.takePending()
      attached.close()
    }
    return pending
  }

  /// Tells those who wait for writes that they are not durable, and forgets the writes.
  static func settle(_ pending: inout [StoreIdentifier: [PendingWrite]], _ error: KithError) {
    for write in pending.values.joined() { write.settle(.failure(error)) }
    pending = [:]
  }
}
