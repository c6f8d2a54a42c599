internal import KithCore
internal import NIOCore

/// One connection's requests, on the node's side.
struct ControlSession: Sendable {
  let node: Node
  let channel: any Channel
  let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>

  /// Refuses a connection.
  func refuse(_ id: UInt64, _ message: String) async throws {
    var response = ControlResponse(id: id)
    response.error = ControlFailure(KithError(.control, message))
    try await send(response)
  }

  /// Answers a request, unless the connection ends before the answer is there.
  func answerWhileConnected(_ request: ControlRequest) async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { try? await answer(request) }
      group.addTask { try? await channel.closeFuture.get() }
      await group.next()
      group.cancelAll()
      // `closeFuture` knows nothing of cancelling.
      channel.close(promise: nil)
    }
  }

  /// Answers a request that has one answer.
  func answer(_ request: ControlRequest) async throws {
    var response = ControlResponse(id: request.id)
    do throws(KithError) {
      try await fill(&response, request)
    } catch {
      response = ControlResponse(id: request.id)
      response.error = ControlFailure(error)
    }
    try await send(response)
  }

  private func fill(
    _ response: inout ControlResponse, _ request: ControlRequest
  ) async throws(KithError) {
    try Self.checkVersion(request)
    guard let operation = request.operation else { throw .malformedControl }
    let store = request.store ?? ""
    switch operation {
    case .version: response.version = ControlLimits.version
    case .get:
      let key = request.key ?? ""
      response.value = try await node.value(forKey: key, in: store).map {
        value throws(KithError) in try ControlEntry.text(value, key: key)
      }
    case .list: response.entries = try Self.entries(try await node.values(in: store))
    case .commit:
      var writes: [(key: String, value: PropertyListValue?)] = []
      for write in request.writes ?? [] {
        writes.append((write.key, try write.value.map(ControlEntry.value)))
      }
      // The program that has the directory open hears of it: somebody else wrote.
      try await node.write(writes, in: store, origin: .guest(0))
    case .status: response.status = try await node.report()
    case .usage: response.usage = try await node.usage(of: store)
    case .hidden:
      var hidden: [ControlHidden] = []
      for entry in try await node.hiddenEntries(in: store) {
        hidden.append(try ControlHidden(entry))
      }
      response.hidden = hidden
    case .refusals:
      var refusals: [ControlRefusal] = []
      for refusal in try await node.refusals(in: store, takingThrough: request.takesThrough) {
        refusals.append(try ControlRefusal(refusal))
      }
      response.refusals = refusals
    case .synchronize:
      let seconds = min(max(0, request.seconds ?? 5), ControlLimits.longestWaitSeconds)
      response.synchronization = ControlSynchronization(
        try await node.synchronize(store, timeout: .seconds(seconds)))
    case .acceptLoss: try await node.acceptLoss(in: store)
    case .devices: response.devices = try await node.deviceReports()
    case .acceptTime: try await node.acceptTime()
    case .rename:
      try await node.rename(DeviceID(control: request.device ?? ""), to: request.name ?? "")
    case .revoke:
      var staying: Set<DeviceID> = []
      for id in request.keeping ?? [] { staying.insert(try DeviceID(control: id)) }
      try await node.revoke(DeviceID(control: request.device ?? ""), keeping: staying)
    case .adopt: response.keys = try await adopt(request)
    case .watch, .invite, .attach: throw .malformedControl
    }
  }

  /// Takes in what was written while nobody was signed in; the keys whose writes lost.
  private func adopt(_ request: ControlRequest) async throws(KithError) -> [String] {
    let policy = request.policy?.policy ?? .standard
    let store = try Node.checked(request.store ?? "", policy)
    let (transactions, clocks) = (request.transactions ?? [], request.clocks ?? [])
    guard transactions.count == clocks.count else { throw .malformedControl }
    var writes: [LocalWrite] = []
    for (transaction, clock) in zip(transactions, clocks) {
      let operations = try transaction.map { entry throws(KithError) in try entry.operation() }
      writes.append(LocalWrite(clock: HybridTime(rawValue: clock), operations: operations))
    }
    let (node, taken) = (node, writes)
    let lost = try await BlockingThread.run { () throws(KithError) in
      try node.adopt(store, policy, taken)
    }
    return lost.sorted().map(\.text)
  }

  /// Sends what a store shows and every change after it, until the connection closes.
  func watch(_ request: ControlRequest) async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        do throws(KithError) {
          try await node.watch(request.store ?? "") { values in
            var response = ControlResponse(id: request.id, isLast: false)
            response.entries = try? Self.entries(values)
            try? await send(response)
          } onChange: { change in
            var response = ControlResponse(id: request.id, isLast: false)
            response.change = try? ControlChange(change)
            try? await send(response)
          }
        } catch {
          var response = ControlResponse(id: request.id)
          response.error = ControlFailure(error)
          try? await send(response)
        }
      }
      group.addTask { try? await channel.closeFuture.get() }
      await group.next()
      group.cancelAll()
      channel.close(promise: nil)
    }
  }

  /// Serves a program that works with a store as if it were its own, until the connection ends.
  func attach(
    _ request: ControlRequest, _ origin: WriteOrigin, _ lines: inout ControlAttachment.Lines
  ) async throws {
    let view: StoreView
    do throws(KithError) {
      try Self.checkVersion(request)
      let policy = request.policy?.policy ?? .standard
      view = try node.store(request.store ?? "", policy: policy).view
    } catch {
      var response = ControlResponse(id: request.id)
      response.error = ControlFailure(error)
      try await send(response)
      return
    }
    let attachment = ControlAttachment(
      request, engine: node.engine, view: view, origin: origin, channel: channel,
      outbound: outbound)
    await attachment.run(&lines)
  }

  /// Invites a device; the answers to candidates come from the client.
  func invite(_ request: ControlRequest, answers: AsyncStream<Bool>) async throws {
    var response = ControlResponse(id: request.id)
    do throws(KithError) {
      let onEvent: @Sendable (InvitationEvent) async -> Void = { event in
        var response = ControlResponse(id: request.id, isLast: false)
        switch event {
        case .opened(let invitation):
          response.token = invitation.token
          response.code = invitation.code
          response.listens = invitation.addresses
        case .wrongCode(let left): response.triesLeft = left
        }
        try? await send(response)
      }
      let onJoinRequest: @Sendable (JoinCandidate) async -> Bool = { candidate in
        var response = ControlResponse(id: request.id, isLast: false)
        response.candidate = ControlCandidate(candidate)
        try? await send(response)
        for await answer in answers { return answer }
        return false
      }
      let candidate =
        request.hasCode == true
        ? try await node.inviteByCode(
          addresses: request.addresses ?? [], onEvent: onEvent, onJoinRequest: onJoinRequest)
        : try await node.invite(addresses: request.addresses ?? []) { token in
          await onEvent(.opened(OpenInvitation(code: nil, token: token, addresses: [])))
        } onJoinRequest: {
          await onJoinRequest($0)
        }
      response.candidate = ControlCandidate(candidate)
    } catch {
      response.error = ControlFailure(error)
    }
    try await send(response)
    channel.close(promise: nil)
  }

  private static func checkVersion(_ request: ControlRequest) throws(KithError) {
    guard request.version == ControlLimits.version else {
      throw KithError(
        .control,
        "The node speaks version \(ControlLimits.version) of the control protocol. Use the same "
          + "version of kith on both sides.")
    }
  }

  private func send(_ response: ControlResponse) async throws {
    try await outbound.write(try ControlJSON.encode(response))
  }

  private static func entries(
    _ values: [Key: PropertyListValue]
  ) throws(KithError) -> [ControlEntry] {
    var entries: [ControlEntry] = []
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      entries.append(try ControlEntry(key: key.text, value: value))
    }
    return entries
  }
}
