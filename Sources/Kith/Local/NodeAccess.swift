internal import FoundationEssentials
package import KithCore
internal import Synchronization

/// A node that answers requests: this process's ``Node``, or another program's (``LocalClient``,
/// ``RemoteNode``).
///
/// Only ``write(_:in:expecting:)`` creates a store; one that nobody wrote to shows nothing.
package protocol NodeAccess: Sendable {
  /// Answers a request. `onEvent` gets the events before the answer, and returns whether to accept
  /// a candidate; it is cancelled if the candidate goes. Throws also `control` or `cancelled`.
  func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer
}

extension NodeAccess {
  package func perform(_ call: NodeCall) async throws(KithError) -> NodeAnswer {
    try await perform(call) { _ in false }
  }

  /// The shown values, or that of one key, and whether a part of the store was damaged on the disk
  /// and is missing.
  package func shown(
    _ key: String? = nil, in store: String
  ) async throws(KithError) -> (values: [Key: PropertyListValue], isLacking: Bool) {
    let call = NodeCall.values(store: store, key: key)
    guard case .shown(let entries, let isLacking) = try await perform(call) else {
      throw .malformedControl
    }
    return (entries.values, isLacking)
  }

  package func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? {
    try await shown(key, in: store).values[Key(key)]
  }

  package func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    try await shown(in: store).values
  }

  /// Durable on return, all writes or none. Nil removes a key.
  ///
  /// Throws `unexpectedValue` unless the store shows the expected values; nil expects that the key
  /// is missing. No other program of this device writes between the check and the write. Another
  /// device may: then the later write wins.
  package func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String,
    expecting expected: [(key: String, value: PropertyListValue?)] = []
  ) async throws(KithError) {
    let call = NodeCall.commit(
      store: store, operations: try .encoding(writes),
      expecting: ExpectedValues(values: try .encoding(expected)))
    _ = try await perform(call)
  }

  /// Writes transactions in order, each accepted or refused alone; all are durable on return. At
  /// most 64 in one call. The policy counts for a new store. Returns the error of each; nil: it is
  /// written.
  package func write(
    each transactions: [[(key: String, value: PropertyListValue?)]], in store: String,
    policy: Policy = .standard
  ) async throws(KithError) -> [KithError?] {
    var operations: [[KithCore.Operation]] = []
    var outcomes: [KithError?] = []
    for writes in transactions {
      do throws(KithError) {
        operations.append(try .encoding(writes))
        outcomes.append(nil)
      } catch {
        outcomes.append(error)
      }
    }
    guard !operations.isEmpty else { return outcomes }
    guard
      case .written(let count, let refused) = try await perform(
        .commitEach(store: store, operations, policy: policy)), count == operations.count
    else { throw .malformedControl }
    var number = 0
    for index in outcomes.indices where outcomes[index] == nil {
      outcomes[index] = refused[number]
      number += 1
    }
    return outcomes
  }

  package func status() async throws(KithError) -> NodeStatus {
    guard case .status(let json) = try await perform(.status),
      let status = try? JSONDecoder().decode(NodeStatus.self, from: json)
    else { throw .malformedControl }
    return status
  }

  package func usage(of store: String) async throws(KithError) -> Usage {
    guard case .usage(let usage) = try await perform(.usage(store: store)) else {
      throw .malformedControl
    }
    return usage
  }

  /// The members that are members only through another device, ascending.
  package func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    guard case .devices(let devices) = try await perform(.dependents(device)) else {
      throw .malformedControl
    }
    return devices
  }

  package func hiddenEntries(in store: String) async throws(KithError) -> [HiddenEntry] {
    guard case .hidden(let hidden) = try await perform(.hidden(store: store)) else {
      throw .malformedControl
    }
    return hidden
  }

  /// The refused transactions. Removes those up to a number.
  package func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [Refusal] {
    let call = NodeCall.refusals(store: store, takingThrough: number)
    guard case .refusals(let refusals) = try await perform(call) else { throw .malformedControl }
    return refusals
  }

  /// The values that a key, or any, showed before on this device, newest first.
  package func history(
    of key: String?, in store: String, limit: Int
  ) async throws(KithError) -> [PastValue] {
    let call = NodeCall.history(store: store, key: key, limit: limit)
    guard case .history(let values) = try await perform(call) else { throw .malformedControl }
    return values
  }

  /// Writes past values; durable on return. Empty: none are kept, and nothing was written.
  package func undo(_ undo: Undo, in store: String) async throws(KithError) -> [PastValue] {
    guard case .history(let values) = try await perform(.undo(store: store, undo)) else {
      throw .malformedControl
    }
    return values
  }

  /// Accepts that a damaged part of a store is lost; durable on return. If another device returns
  /// it later, it is still taken.
  package func acceptLoss(in store: String) async throws(KithError) {
    _ = try await perform(.acceptLoss(store: store))
  }

  /// Waits until so many other devices (nil: all) have everything, or the timeout passes. Throws
  /// `unknownStore` if the account has no such store.
  package func waitUntilSynced(
    _ store: String, timeout: Duration, devices: Int? = nil
  ) async throws(KithError) -> SyncReport {
    let call = NodeCall.waitUntilSynced(
      store: store, seconds: timeout / .seconds(1), devices: devices)
    guard case .syncReport(let report) = try await perform(call) else { throw .malformedControl }
    return report
  }

  /// Calls back with the shown values, then with every change, one after the other, until the task
  /// is cancelled. Throws `unknownStore` as ``waitUntilSynced(_:timeout:devices:)`` does.
  ///
  /// Changes that come during `onChange` wait as in ``StoreChanges``. If `joins`, all of them are
  /// joined into one, with the newest value of each key.
  package func watch(
    _ store: String, joins: Bool = false,
    onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (KeyValueStore.Change) async -> Void
  ) async throws(KithError) {
    let shown = Mutex<[Key: PropertyListValue]>([:])
    let waiting = ChangeBuffer(seesOwnWrites: true, limit: joins ? 1 : ChangeBuffer.limit)
    async let delivery: Void = {
      while let change = await waiting.next() { await onChange(change) }
    }()
    let result = await Result(awaiting: { () async throws(KithError) in
      try await perform(.watch(store: store)) { event in
        switch event {
        case .values(let entries):
          let values = entries.values
          shown.withLock { $0 = values }
          await onValues(values)
        case .change(let change):
          waiting.offer(shown.withLock { change.change(of: &$0) })?()
        case .invitation, .wrongCode, .candidate: break
        }
        return false
      }
    })
    waiting.finish()
    await delivery
    _ = try result.get()
  }

  /// The device's own carriers, then the account's, with their credentials.
  package func carriers() async throws(KithError) -> [CarrierSettings] {
    guard case .carriers(let carriers) = try await perform(.carriers) else {
      throw .malformedControl
    }
    return carriers
  }

  /// Adds a carrier, or replaces its settings. Durable on return.
  package func keepCarrier(_ settings: CarrierSettings) async throws(KithError) {
    _ = try await perform(.keepCarrier(settings))
  }

  /// Durable on return. Its objects stay.
  package func removeCarrier(_ settings: CarrierSettings) async throws(KithError) {
    _ = try await perform(.removeCarrier(settings))
  }

  /// Has the node look at its carriers at once.
  package func lookAtCarriers() async throws(KithError) { _ = try await perform(.lookAtCarriers) }

  /// Accepts the device's time as right at this moment, so that a clock that was ahead heals
  /// although the host's clock is not synchronised (`Docs/Protocol/clocks.md`, "Certainty").
  /// Durable on return. No effect if no clock was ahead.
  package func acceptTime() async throws(KithError) { _ = try await perform(.acceptTime) }

  /// Connects to `host:port` from now on, as to a configured peer, and waits some seconds for the
  /// outcome of the first call; throws `notRunning` if the node does not run.
  @discardableResult
  package func meet(_ address: String) async throws(KithError) -> NodeStatus.Address {
    guard case .met(let met) = try await perform(.meet(address: address)) else {
      throw .malformedControl
    }
    return met
  }

  /// Stops calling an address, and forgets it here; durable on return. A peer that remembers it may
  /// tell it again.
  package func forget(address: String) async throws(KithError) {
    _ = try await perform(.forget(address: address))
  }

  /// See ``Accounts/rename(_:to:)``.
  package func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    _ = try await perform(.rename(device, name: name))
  }

  /// See ``Accounts/revoke(_:keeping:)``. The node carries over the removed device's writes.
  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    _ = try await perform(.revoke(device, keeping: staying))
  }

  /// Invites one device by a token, or by a short code too, and makes it a member if
  /// `onJoinRequest` returns true. `addresses` are the token's hosts; if empty, the node's own.
  @discardableResult
  package func invite(
    addresses: [String] = [], hasCode: Bool = false,
    onOpen: @escaping @Sendable (OpenInvitation) async -> Void,
    onWrongCode: @escaping @Sendable (_ triesLeft: Int) async -> Void = { _ in },
    onJoinRequest: @escaping @Sendable (PairingDevice) async -> Bool
  ) async throws(KithError) -> PairingDevice {
    let answer = try await perform(.invite(addresses: addresses, hasCode: hasCode)) { event in
      switch event {
      case .invitation(let invitation): await onOpen(invitation)
      case .wrongCode(let left): await onWrongCode(left)
      case .candidate(let candidate): return await onJoinRequest(candidate)
      case .values, .change: break
      }
      return false
    }
    guard case .joined(let candidate) = answer else { throw .malformedControl }
    return candidate
  }
}

extension Encodable {
  var json: Data {
    get throws(KithError) {
      do {
        return try JSONEncoder().encode(self)
      } catch {
        throw KithError(.control, "The answer cannot be encoded: \(error).", cause: error)
      }
    }
  }
}

/// The node that has a directory open. Each request makes its own connection.
package struct LocalClient: NodeAccess {
  private let directory: String

  package init(directory: String) {
    self.directory = directory
  }

  package func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    let directory = directory
    let cancelled = KithError(.cancelled, "The request was cancelled.")
    // A connection that comes later is closed when it is released.
    let reached = await BlockingThread.runUntilCancelled {
      Result { () throws(KithError) in try RemoteNode.reach(directory) }
    }
    guard let node = try reached?.get() else { throw cancelled }
    defer { node.close() }
    let result = await withTaskCancellationHandler {
      await Result(awaiting: { () async throws(KithError) in
        try await node.perform(call, onEvent: onEvent)
      })
    } onCancel: {
      node.close()
    }
    switch result {
    case .success(let answer): return answer
    case .failure where Task.isCancelled: throw cancelled
    case .failure(let error): throw error
    }
  }
}

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
