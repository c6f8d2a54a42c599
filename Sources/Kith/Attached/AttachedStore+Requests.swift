internal import KithCore

extension AttachedStore {
  /// What this program sees in use, its unanswered writes included; no request is needed.
  func usage(of store: StoreIdentifier) -> Usage { state.withLock { $0.shown.usage } }

  /// What the quota hides; nothing where the node does not answer within
  /// ``AttachedLimits/request``.
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenValue] {
    (try? ask(.hidden, store))?.hidden?.compactMap { try? $0.value() } ?? []
  }

  /// Refused transactions of the device, whichever of its programs wrote them; none where the node
  /// does not answer within ``AttachedLimits/request``.
  func refusals(of store: StoreIdentifier) -> [RefusedTransaction] {
    (try? ask(.refusals, store))?.refusals?.compactMap { try? $0.value() } ?? []
  }

  /// Forgets refusals up to a number; they stay where the node does not answer within
  /// ``AttachedLimits/request``.
  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool {
    (try? ask(.refusals, store) { $0.takesThrough = number }) != nil
  }

  /// Which devices have what this one wrote. Where the node does not answer within
  /// ``AttachedLimits/request``: that writes wait, and of no device what it has.
  func syncReport(of store: StoreIdentifier) -> SyncReport {
    let response = try? ask(.synchronize, store) { $0.seconds = 0 }
    return (try? response?.synchronization?.value())
      ?? SyncReport(complete: [], incomplete: [], hasUnpublishedWrites: true)
  }

  /// Waits until all other devices have everything, or the time is over. A node that has no room
  /// for one more that waits is asked again.
  func waitUntilComplete(_ store: StoreIdentifier, timeout: Duration) async {
    let client = ControlClient(directory: directory)
    let deadline = SuspendingClock.now.advanced(by: timeout)
    while !Task.isCancelled {
      let remaining = deadline - SuspendingClock.now
      guard remaining > .zero else { return }
      // The node may be stopped, and then keeps no time.
      let isDone = await withTaskGroup(of: Bool.self) { group in
        group.addTask {
          (try? await client.synchronize(store.rawValue, timeout: remaining)) != nil
        }
        group.addTask {
          try? await Task.sleep(for: remaining)
          return true
        }
        defer { group.cancelAll() }
        return await group.next() ?? true
      }
      if isDone { return }
      try? await Task.sleep(for: AttachedLimits.retry)
    }
  }

  /// Asks the node something on a connection of its own, and blocks until it has answered.
  private func ask(
    _ operation: ControlRequest.Operation, _ store: StoreIdentifier,
    _ change: (inout ControlRequest) -> Void = { _ in }
  ) throws(KithError) -> ControlResponse {
    var request = ControlRequest(id: 1)
    request.operation = operation
    request.store = store.rawValue
    change(&request)
    let deadline = SuspendingClock.now.advanced(by: AttachedLimits.request)
    let (stream, response) = try ControlStream.open(socketPath, request, until: deadline)
    stream.close()
    return response
  }
}
