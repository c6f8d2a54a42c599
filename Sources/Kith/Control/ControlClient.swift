public import KithCore
internal import KithStorage
internal import NIOCore
internal import NIOPosix

/// Talks to the node that has a directory open, over its control socket. Every call makes a
/// connection of its own.
public final class ControlClient: StoreAccess {
  private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  private let path: String

  /// A client of the node that has the directory open.
  public init(directory: String) {
    path = DeviceDirectory.controlSocketPath(directory)
  }

  /// The version of the control protocol that the node speaks; a way to see whether one runs.
  ///
  /// - Throws: ``KithError`` with `notRunning` where nobody answers.
  public func version() async throws(KithError) -> Int {
    guard let version = try await ask(.version).version else { throw .malformedControl }
    return version
  }

  /// What a key of a store shows.
  public func value(
    forKey key: String, in store: String
  ) async throws(KithError) -> PropertyListValue? {
    try await ask(.get, store) { $0.key = key }.value.map(ControlEntry.value)
  }

  /// All that a store shows.
  public func values(in store: String) async throws(KithError) -> [Key: PropertyListValue] {
    try Self.values(try await ask(.list, store).entries)
  }

  /// Writes that stand or fall together, durable on return. Nil removes a key.
  public func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String
  ) async throws(KithError) {
    var entries: [ControlEntry] = []
    for write in writes { entries.append(try ControlEntry(key: write.key, value: write.value)) }
    _ = try await ask(.commit, store) { $0.writes = entries }
  }

  /// The node's status.
  public func report() async throws(KithError) -> NodeReport {
    guard let status = try await ask(.status).status else { throw .malformedControl }
    return status
  }

  /// What a store uses of its limits.
  public func usage(of store: String) async throws(KithError) -> UsageReport {
    guard let usage = try await ask(.usage, store).usage else { throw .malformedControl }
    return usage
  }

  /// What the quota hides in a store.
  public func hiddenEntries(in store: String) async throws(KithError) -> [HiddenValue] {
    var values: [HiddenValue] = []
    for hidden in try await ask(.hidden, store).hidden ?? [] { values.append(try hidden.value()) }
    return values
  }

  /// Refused transactions of a store; those up to a number are forgotten.
  public func refusals(
    in store: String, takingThrough number: UInt64?
  ) async throws(KithError) -> [RefusedTransaction] {
    var values: [RefusedTransaction] = []
    let response = try await ask(.refusals, store) { $0.takesThrough = number }
    for refusal in response.refusals ?? [] { values.append(try refusal.value()) }
    return values
  }

  /// Accepts that what was damaged of a store, and is missing still, is gone; durable on return.
  public func acceptLoss(in store: String) async throws(KithError) {
    _ = try await ask(.acceptLoss, store)
  }

  /// Waits until other devices have everything, or the time is over.
  public func synchronize(
    _ store: String, timeout: Duration
  ) async throws(KithError) -> SyncReport {
    let response = try await ask(.synchronize, store) { $0.seconds = timeout / .seconds(1) }
    guard let report = try response.synchronization?.value() else { throw .malformedControl }
    return report
  }

  /// What a store shows, and every change after it, until the task is cancelled.
  public func watch(
    _ store: String, onValues: @escaping @Sendable ([Key: PropertyListValue]) async -> Void,
    onChange: @escaping @Sendable (Change) async -> Void
  ) async throws(KithError) {
    try await exchange(request(.watch, store)) { response, _ in
      if let entries = response.entries { await onValues(try Self.values(entries)) }
      if let change = response.change { await onChange(try change.value()) }
    }
  }

  /// Invites one device by a token; see `Node.invite`.
  public func invite(
    addresses: [String] = [],
    onToken: @escaping @Sendable (String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    try await invite(addresses, hasCode: false, onJoinRequest) { event in
      if case .opened(let invitation) = event { await onToken(invitation.token) }
    }
  }

  /// Invites one device by a short code or a token; see `Node.inviteByCode`.
  public func inviteByCode(
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
    var request = request(.invite, nil)
    request.addresses = addresses.isEmpty ? nil : addresses
    request.hasCode = hasCode
    let last = try await exchange(request) { response, outbound in
      if let token = response.token {
        await onEvent(
          .opened(
            OpenInvitation(
              code: response.code, token: token, addresses: response.listens ?? [])))
      }
      if let left = response.triesLeft { await onEvent(.wrongCode(triesLeft: left)) }
      if let candidate = response.candidate {
        var answer = ControlRequest(id: response.id)
        answer.isAccepted = await onJoinRequest(try candidate.value())
        try await outbound.write(try ControlJSON.encode(answer))
      }
    }
    guard let last else { throw closed }
    guard let candidate = try last.candidate?.value() else { throw .malformedControl }
    return candidate
  }

  // MARK: Exchange

  private func request(_ operation: ControlRequest.Operation, _ store: String?) -> ControlRequest {
    var request = ControlRequest(id: 1)
    request.operation = operation
    request.store = store
    return request
  }

  func ask(
    _ operation: ControlRequest.Operation, _ store: String? = nil,
    _ change: (inout ControlRequest) -> Void = { _ in }
  ) async throws(KithError) -> ControlResponse {
    var request = request(operation, store)
    change(&request)
    guard let response = try await exchange(request, { _, _ in }) else {
      throw closed
    }
    return response
  }

  /// The connection ended before the answer was there.
  private var closed: KithError {
    KithError(
      .control,
      "The node stopped or closed the connection before it answered. See that it runs.",
      path: path)
  }

  /// Sends a request, hands over what comes before the last response, and returns that one; nil
  /// where the connection ended without.
  @discardableResult
  private func exchange(
    _ request: ControlRequest,
    _ each: (ControlResponse, NIOAsyncChannelOutboundWriter<ByteBuffer>) async throws -> Void
  ) async throws(KithError) -> ControlResponse? {
    do {
      let connection = try await connect()
      return try await connection.executeThenClose { inbound, outbound in
        try await outbound.write(try ControlJSON.encode(request))
        for try await line in inbound {
          guard let response = ControlJSON.decode(ControlResponse.self, line) else {
            throw KithError.malformedControl
          }
          if let failure = response.error { throw failure.error }
          if response.isLast { return response }
          try await each(response, outbound)
        }
        return nil
      }
    } catch let error as KithError {
      throw error
    } catch is CancellationError {
      throw KithError(.cancelled, "The request was cancelled.")
    } catch {
      throw KithError(
        .control, "The control socket failed: \(error). See that the node still runs.", path: path,
        cause: error)
    }
  }

  private func connect() async throws -> Connection {
    let connection = try await connectToAnyone()
    guard await ControlSocket.isSameUser(connection.channel) else {
      try await connection.executeThenClose { _, _ in }
      throw ControlSocket.servedByAnother(path)
    }
    return connection
  }

  private func connectToAnyone() async throws -> Connection {
    do {
      return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(unixDomainSocketPath: path) { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(LineHandler())
            return try Connection(wrappingChannelSynchronously: channel)
          }
        }
    } catch {
      throw KithError(
        .notRunning, "No node answers there. Start one, or open the directory itself.",
        path: path, cause: error)
    }
  }

  private static func values(
    _ entries: [ControlEntry]?
  ) throws(KithError) -> [Key: PropertyListValue] {
    var values: [Key: PropertyListValue] = [:]
    for entry in entries ?? [] {
      values[Key(entry.key)] = try entry.value.map(ControlEntry.value)
    }
    return values
  }
}
