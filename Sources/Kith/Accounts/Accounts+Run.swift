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
  /// - Throws: ``KithError`` with `alreadyRunning` or `closed`, `network` where an address cannot be
  ///   listened on, or what keeps the stores of who is signed in from being opened.
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
      _ = try await BlockingThread.run { () throws(KithError) in
        try self.follow(isServing: true)
      }
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

  /// Runs a node; where its port is taken, on any other: peers learn it when they meet. What else
  /// keeps it from listening is logged, for programs learn of it only when they await ``run()``.
  private func serve(_ node: Node) async throws {
    do {
      try await node.run(onAnyPort: !configuration.insistsOnItsOwn)
    } catch let error as KithError where error.code == .network {
      configuration.logger.error(
        "other devices cannot be served", metadata: ["reason": "\(error)"])
      throw error
    }
  }

  /// Returns once the seat is to be left: somebody has signed in or out, or who had the directory
  /// open has ended.
  private func watch(_ seat: Seat) async throws {
    while !Task.isCancelled {
      let version = moved.version
      if try await BlockingThread.run({ () throws(KithError) in try self.lookAgain(seat) }) {
        return
      }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.moved.wait(after: version) }
        group.addTask { try? await Task.sleep(for: Self.lookInterval) }
        await group.next()
        group.cancelAll()
      }
    }
  }

  /// As ``look(_:)``. If the disk fails or no descriptors are left, the seat stays, and is looked at
  /// again later.
  private func lookAgain(_ seat: Seat) throws(KithError) -> Bool {
    do throws(KithError) {
      return try look(seat)
    } catch {
      guard Self.passingTroubles.contains(error.code) else { throw error }
      return false
    }
  }

  /// Whether the seat is to be left. Hands over what local stores still owe.
  private func look(_ seat: Seat) throws(KithError) -> Bool {
    let (stores, isSettled) = state.withLock { state in
      (state.stores.values.map(\.store), adoptIfOwed(&state))
    }
    if isSettled { moved.raise() }
    return try mustLeave(seat, stores)
  }

  /// Takes the place that counts now, and shows in all stores what it has. Does nothing where the
  /// place is taken already, nor where ``run()`` does it, whose node must not be closed under it.
  ///
  /// - Parameter isServing: Whether this is ``run()``.
  /// - Returns: Whether the place that counts is taken; otherwise ``run()`` is about to.
  /// - Throws: ``KithError`` where that place cannot be opened, or all is closed.
  @discardableResult
  func follow(isServing: Bool) throws(KithError) -> Bool {
    let outcome = try state.withLock { state throws(KithError) -> (isOurs: Bool, hasMoved: Bool) in
      guard isServing || !state.isRunning else { return (false, false) }
      guard !state.isClosed else { throw .closedNode }
      let stores = state.stores.values.map(\.store)
      guard try mustLeave(state.seat, stores) else { return (true, false) }
      try move(&state, stores)
      return (true, true)
    }
    if outcome.hasMoved { moved.raise() }
    return outcome.isOurs
  }

  /// Blocks while stores get something else behind them. Where what stood there is gone, sees to it;
  /// whether it may be still to come.
  func succeed(isGone: Bool) -> Bool {
    guard isGone else { return state.withLock { $0.isRunning } }
    do throws(KithError) {
      return try !follow(isServing: false)
    } catch {
      return false
    }
  }

  /// Leaves the seat for the one that counts now.
  private func move(_ state: inout State, _ stores: [KeyValueStore]) throws(KithError) {
    let old = state.seat
    let place = try directory.place()
    let isTakeOver = place == old.place
    var pending = Attachment.leave(stores)
    if !isTakeOver {
      // Another account's.
      Attachment.settle(&pending, .closedNode)
    }
    if case .attached = old.kind, old.place == .signedOut {
      // The node that serves the local stores follows, too. It keeps them until it has the account's
      // device: not to be waited for by one that has that open.
      try? directory.openLocal(waiting: AccountsDirectory.longestWait).close()
    }
    let next: Seat
    do throws(KithError) {
      next = try Seat(at: place, in: directory, configuration)
    } catch {
      Attachment.settle(&pending, error)
      throw error
    }
    old.release(stores)
    state.seat = next
    identity.withLock { $0 = next.account }
    // Closed before local stores are adopted: whoever has them open cannot be another.
    if case .own = old.kind { close(old, stores) }
    let superseded = isTakeOver ? [:] : adopt(&state)
    let reason: Change.Reason =
      isTakeOver ? .serverChange : old.place == .signedOut ? .initialSyncChange : .accountChange
    for open in state.stores.values {
      let store = open.store
      do throws(KithError) {
        store.backing = try next.open(
          store.view, open.policy, reason: reason,
          superseded: superseded[store.identifier] ?? [],
          pending: pending[store.identifier] ?? [], onEnd: moved.raise)
      } catch {
        configuration.logger.error(
          "a store cannot be opened there", metadata: ["code": "\(error.code)"])
      }
    }
  }

  /// Whether another place counts now, or who had the directory open has ended.
  private func mustLeave(_ seat: Seat, _ stores: [KeyValueStore]) throws(KithError) -> Bool {
    if try directory.place() != seat.place { return true }
    guard case .attached(let attachment) = seat.kind else { return false }
    return Attachment.hasEnded(stores) || stores.isEmpty && attachment.account == nil
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
}
