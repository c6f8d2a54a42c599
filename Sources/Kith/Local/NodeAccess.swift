package import KithCore
internal import Synchronization

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A node that answers requests: the one of this process (``Node``), or that of another program
/// (``LocalClient``).
///
/// Looking at a store never begins it: a store that nobody wrote to shows nothing. Only
/// ``write(_:in:)`` begins one, on all devices of the account.
package protocol NodeAccess: Sendable {
  /// Answers a request.
  ///
  /// - Parameters:
  ///   - call: The request.
  ///   - onEvent: Gets the events before the answer. The result counts for a candidate: whether to
  ///     take it in.
  /// - Returns: The answer.
  /// - Throws: ``KithError``, also with `control`, or `cancelled`.
  func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer
}

extension NodeAccess {
  package func perform(_ call: NodeCall) async throws(KithError) -> NodeAnswer {
    try await perform(call) { _ in false }
  }

  /// The value that a key of a store shows.
  package func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? { try await values(in: store)[Key(key)] }

  /// All that a store shows.
  package func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    guard case .values(let entries) = try await perform(.values(store: store)) else {
      throw .malformedControl
    }
    return entries.values
  }

  /// Writes that stand or fall together, durable on return. Nil removes a key.
  package func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError) {
    var operations: [KithCore.Operation] = []
    for write in writes { operations.append(try .encoding(write.value, forKey: write.key)) }
    _ = try await perform(.commit(store: store, operations: operations))
  }

  /// The node's status.
  package func report() async throws(KithError) -> NodeStatus {
    guard case .status(let json) = try await perform(.status) else { throw .malformedControl }
    return try .init(json: json)
  }

  /// The used part of a store's limits.
  package func usage(of store: String) async throws(KithError) -> Usage {
    guard case .usage(let usage) = try await perform(.usage(store: store)) else {
      throw .malformedControl
    }
    return usage
  }

  /// The devices that are members only through another, ascending.
  package func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    guard case .devices(let devices) = try await perform(.dependents(device)) else {
      throw .malformedControl
    }
    return devices
  }

  /// The entries that the quota hides in a store.
  package func hiddenEntries(in store: String) async throws(KithError) -> [HiddenEntry] {
    guard case .hidden(let hidden) = try await perform(.hidden(store: store)) else {
      throw .malformedControl
    }
    return hidden.compactMap(\.hidden)
  }

  /// Refused transactions of a store; those up to a number are forgotten.
  package func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [Refusal] {
    let call = NodeCall.refusals(store: store, takingThrough: number)
    guard case .refusals(let refusals) = try await perform(call) else { throw .malformedControl }
    return refusals.compactMap(\.refusal)
  }

  /// Accepts that what was damaged of a store, and is missing still, is gone; durable on return. If
  /// another device gives it back later, it is taken all the same.
  package func acceptLoss(in store: String) async throws(KithError) {
    _ = try await perform(.acceptLoss(store: store))
  }

  /// Waits until other devices have everything, or the time is over. Throws ``KithError`` with
  /// `unknownStore` if the account has no such store.
  package func synchronize(
    _ store: String, timeout: Duration
  ) async throws(KithError) -> SyncReport {
    let call = NodeCall.synchronize(store: store, seconds: timeout / .seconds(1))
    guard case .synchronized(let report) = try await perform(call) else { throw .malformedControl }
    return report
  }

  /// Calls back with the values that a store shows, then with every change after them, until the
  /// task is cancelled. Throws ``KithError`` with `unknownStore` if the account has no such store.
  package func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (KeyValueStore.Change) async -> Void
  ) async throws(KithError) {
    let shown = Mutex<[Key: PropertyListValue]>([:])
    _ = try await perform(.watch(store: store)) { event in
      switch event {
      case .values(let entries):
        let values = entries.values
        shown.withLock { $0 = values }
        await onValues(values)
      case .change(let change): await onChange(shown.withLock { change.change(of: &$0) })
      case .invitation, .candidate: break
      }
      return false
    }
  }

  /// Says that the time that the device uses is right; see `Node.acceptTime`.
  package func acceptTime() async throws(KithError) { _ = try await perform(.acceptTime) }

  /// Calls a device something else; see `Node.rename`.
  package func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    _ = try await perform(.rename(device, name: name))
  }

  /// Throws a device out of the account; see `Node.revoke`.
  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    _ = try await perform(.revoke(device, keeping: staying))
  }

  /// Invites one device by a token; see `Node.invite`. The addresses are the hosts that the token
  /// names; none: the node's own.
  package func invite(
    addresses: [String] = [],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    try await invite(addresses, hasCode: false, onJoinRequest) { event in
      if case .opened(let invitation) = event { await onToken(invitation.token) }
    }
  }

  /// Invites one device by a short code or a token; see `Node.inviteByCode`.
  package func inviteByCode(
    addresses: [String] = [],
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    try await invite(addresses, hasCode: true, onJoinRequest, onEvent: onEvent)
  }

  private func invite(
    _ addresses: [String], hasCode: Bool,
    _ onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool,
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void
  ) async throws(KithError) -> JoinCandidate {
    let answer = try await perform(.invite(addresses: addresses, hasCode: hasCode)) { event in
      switch event {
      case .invitation(let event): await onEvent(event)
      case .candidate(let candidate): return await onJoinRequest(candidate)
      case .values, .change: break
      }
      return false
    }
    guard case .joined(let candidate) = answer else { throw .malformedControl }
    return candidate
  }
}

extension Decodable {
  /// Reads JSON from a node.
  fileprivate init(json: Data) throws(KithError) {
    do {
      self = try JSONDecoder().decode(Self.self, from: json)
    } catch {
      throw .malformedControl
    }
  }
}

extension Encodable {
  /// The JSON for a program.
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
