internal import Dispatch
internal import KithCore
internal import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization

extension Accounts {
  /// How often the directory is looked at: another program, or a person at the command line, may
  /// have signed in or out.
  private static let lookInterval = Duration.milliseconds(500)

  /// Serves whoever is signed in, until the task is cancelled or its service group shuts down:
  /// listens, dials, publishes and takes in, serves the programs that attach, follows whoever signs
  /// in or out. Where another process has the directory open, it waits to take over from it.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` or `closed`, or what keeps the stores of who is
  ///   signed in from being opened.
  public func run() async throws {
    try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      if state.isRunning { throw KithError(.alreadyRunning, "The accounts are served already.") }
      state.isRunning = true
    }
    defer { state.withLock { $0.isRunning = false } }
    do {
      try await cancelWhenGracefulShutdown { try await self.serve() }
    } catch is CancellationError {
      return
    }
  }

  private func serve() async throws {
    while !Task.isCancelled {
      try follow()
      let seat = state.withLock { $0.seat }
      try await withThrowingTaskGroup(of: Void.self) { group in
        if case .own(let node) = seat.kind {
          group.addTask { try await self.serve(node) }
        }
        group.addTask { try await self.watch(seat) }
        defer { group.cancelAll() }
        try await group.next()
      }
    }
  }

  /// Runs a node; where its port is taken, on any other: peers learn it when they meet.
  private func serve(_ node: Node) async throws {
    do {
      try await node.run()
    } catch let error as KithError where error.code == .network && configuration.port != 0 {
      configuration.logger.warning(
        "the port is taken, another is used", metadata: ["port": "\(configuration.port)"])
      try await node.run(port: 0)
    }
  }

  /// Returns once the seat is to be left: somebody has signed in or out, or who had the directory
  /// open has ended.
  private func watch(_ seat: Seat) async throws {
    while !Task.isCancelled {
      let version = moved.version
      let stores = state.withLock { $0.stores.values.map(\.store) }
      if try mustLeave(seat, stores) { return }
      state.withLock { state in
        if state.owesAdoption { adopt(&state) }
      }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.moved.wait(after: version) }
        group.addTask { try? await Task.sleep(for: Self.lookInterval) }
        await group.next()
        group.cancelAll()
      }
    }
  }

  /// Takes the place that counts now, and shows in all stores what it has. Does nothing where the
  /// place is taken already.
  func follow() throws(KithError) {
    try state.withLock { state throws(KithError) in
      let old = state.seat
      guard try mustLeave(old, state.stores.values.map(\.store)) else { return }
      replacing.enter()
      defer { replacing.leave() }
      let stores = state.stores.values.map(\.store)
      let place = try directory.place()
      let isTakeOver = place == old.place
      if case .attached = old.kind { Attachment.stop(stores) }
      let next = try Seat(at: place, in: directory, configuration)
      old.release(stores)
      state.seat = next
      // Closed before local stores are adopted: whoever has them open cannot be another.
      if !isTakeOver { close(old, stores) }
      let superseded = isTakeOver ? [:] : adopt(&state)
      for open in state.stores.values {
        let store = open.store
        let pending = Attachment.pending(store)
        do throws(KithError) {
          store.backing = try next.open(
            store.view, open.policy, reason: isTakeOver ? .serverChange : .accountChange,
            superseded: superseded[store.identifier] ?? [], onEnd: moved.raise)
        } catch {
          configuration.logger.error(
            "a store cannot be opened there", metadata: ["code": "\(error.code)"])
          continue
        }
        if isTakeOver { write(pending, again: store) }
      }
      identity.withLock { $0 = next.account }
    }
    moved.raise()
  }

  /// Whether another place counts now, or who had the directory open has ended.
  private func mustLeave(_ seat: Seat, _ stores: [KeyValueStore]) throws(KithError) -> Bool {
    if try directory.place() != seat.place { return true }
    guard case .attached(let directory) = seat.kind else { return false }
    return Attachment.hasEnded(stores) || stores.isEmpty && Attachment.report(directory) == nil
  }

  /// Leaves a place; what could not be made durable there is lost with its cause in the log.
  private func close(_ seat: Seat, _ stores: [KeyValueStore]) {
    do throws(KithError) {
      try seat.close(stores)
    } catch {
      configuration.logger.error(
        "what was written last was not made durable", metadata: ["code": "\(error.code)"])
    }
  }

  /// Writes what the node that ended has not answered.
  private func write(_ pending: [[KithCore.Operation]], again store: KeyValueStore) {
    for operations in pending {
      do throws(KithError) {
        try store.backing.write(store.identifier, operations)
      } catch {
        configuration.logger.warning(
          "a write was refused when the node changed", metadata: ["code": "\(error.code)"])
      }
    }
  }
}
