internal import KithCore
internal import ServiceLifecycle

extension Accounts {
  /// Used if the kernel reports no changes.
  private static let lookInterval = Duration.seconds(1)
  /// How often stores are opened that could not be.
  private static let reopeningInterval = Duration.seconds(10)

  /// Serves the signed-in account until the task is cancelled or its service group shuts down.
  ///
  /// It listens, dials, publishes, applies changes, serves the programs that attach, and follows
  /// signing in and out. If another process has the directory open, it waits to take over from it.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` or `closed`, `network` if an address cannot be
  ///   listened on, or the error that keeps the signed-in account's stores from being opened.
  public func run() async throws { try await run(onServing: {}) }

  /// As ``run()``. `onServing` is called each time that a node of this process has begun to listen, or
  /// the accounts are attached to another program's node: on any thread, and it must not block.
  package func run(onServing: @escaping @Sendable () -> Void) async throws {
    try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      if state.isRunning { throw KithError(.alreadyRunning, "The accounts are served already.") }
      state.isRunning = true
    }
    defer {
      let stores = state.withLock { state in
        state.isRunning = false
        return state.stores.values.map(\.store)
      }
      // Callers that wait for another service now open it themselves.
      for store in stores { store.wakeWaiters() }
    }
    do {
      try await cancelWhenGracefulShutdown { try await self.serve(onServing: onServing) }
    } catch is CancellationError {
      return
    }
  }

  private func serve(onServing: @escaping @Sendable () -> Void) async throws {
    // Another program, or the command line, may sign in or out.
    let watch = DirectoryWatch(directory.path, onChange: switched.raise)
    defer { watch?.cancel() }
    let isWatched = watch != nil
    while !Task.isCancelled {
      _ = try await BlockingThread.run { () throws(KithError) in
        try self.follow(isServing: true)
      }
      let active = state.withLock { $0.active }
      try await withThrowingTaskGroup(of: Void.self) { group in
        switch active.kind {
        case .own(let node):
          group.addTask { try await self.serve(node, onServing: onServing) }
        case .attached: onServing()
        }
        group.addTask { try await self.watch(active, isWatched: isWatched) }
        defer { group.cancelAll() }
        try await group.next()
      }
    }
  }

  /// Runs a node, on any other port if its own is taken. Other errors of listening are logged too,
  /// because programs see them only when they await ``run()``; `kith run`, which insists, prints
  /// them.
  private func serve(_ node: Node, onServing: @escaping @Sendable () -> Void) async throws {
    do {
      try await node.run(onAnyPort: !configuration.insistsOnItsOwn, onServing: onServing)
    } catch let error as KithError
      where error.code == .network && !configuration.insistsOnItsOwn
    {
      configuration.logger.error(
        "other devices cannot be served", metadata: ["reason": "\(error)"])
      throw error
    }
  }

  /// Returns once the active device must be closed: somebody signed in or out, the attached node ended,
  /// or the own one is to yield or to be repaired.
  private func watch(_ active: ActiveDevice, isWatched: Bool) async throws {
    while !Task.isCancelled {
      let version = switched.version
      if try await BlockingThread.run({ () throws(KithError) in try self.look(active) }) {
        return
      }
      let retryAt = state.withLock { $0.pendingAdoption?.retryAt }
      let reopenAt = unopenedStores.isEmpty ? nil : ContinuousClock.now + Self.reopeningInterval
      let lookAt = isWatched ? nil : ContinuousClock.now + Self.lookInterval
      let next = retryAt ?? lookAt ?? reopenAt
      var bodies: [@Sendable () async -> Void] = [{ await self.switched.wait(after: version) }]
      if case .own(let node) = active.kind {
        bodies.append { await node.engine.damage.wait(after: 0) }
      }
      if let next { bodies.append { try? await Task.sleep(until: next, clock: .continuous) } }
      await race(bodies)
    }
  }

  /// Whether to reopen the device; if the disk fails or no descriptors are left, it stays for now.
  /// Also retries a pending adoption, and opens stores that could not be opened.
  private func look(_ active: ActiveDevice) throws(KithError) -> Bool {
    if switchLock.withLock({ _ in retryPendingAdoption() }) { switched.raise() }
    // The failure was logged, and a write throws it.
    for store in unopenedStores { try? store.reopen() }
    do throws(KithError) {
      return try mustLeave(active)
    } catch {
      guard Self.passingTroubles.contains(error.code) else { throw error }
      return false
    }
  }

  /// Opens the device that is signed in now, and shows its values in all stores. Returns false if
  /// ``run()`` serves a node of its own, which must not be closed under it, and is about to do
  /// so.
  @discardableResult
  func follow(isServing: Bool) throws(KithError) -> Bool {
    var hasBegun = false
    // Also after a failure: who looked meanwhile looks again.
    defer { if hasBegun { switched.raise() } }
    return try switchLock.withLock { _ throws(KithError) -> Bool in
      let now = state.withLock { $0 }
      if case .own = now.active.kind, !isServing, now.isRunning { return false }
      guard !now.isClosed else { throw .closedNode }
      guard try mustLeave(now.active) else { return true }
      hasBegun = true
      state.withLock { $0.isSwitching = true }
      defer { state.withLock { $0.isSwitching = false } }
      try switchOver(from: now.active, Array(now.stores.values))
      return true
    }
  }

  /// Called when the service of the stores has ended: opens the device that is signed in now.
  /// Returns whether another service may still come.
  func serviceEnded() -> Bool {
    do throws(KithError) {
      return try !follow(isServing: false)
    } catch {
      return false
    }
  }

  private func switchOver(from old: ActiveDevice, _ stores: [OpenStore]) throws(KithError) {
    let location = try directory.location()
    let isTakeOver = location == old.location
    if case .attached = old.kind, old.location == .signedOut, !isTakeOver {
      // The node of the local stores also follows, and keeps them until it has the account's
      // device. So wait for them before opening that device.
      try? directory.openLocal(waiting: AccountsDirectory.longestWait).close()
    }
    let next: ActiveDevice
    if isTakeOver && (old.isYielding || old.isDamaged) {
      leave(old, stores)
      next = try ActiveDevice(
        at: location, in: directory, configuration, afterYield: old.isYielding,
        onEnd: switched.raise)
    } else {
      next = try ActiveDevice(at: location, in: directory, configuration, onEnd: switched.raise)
      // Before the adoption, so that only another process can have the local stores open.
      leave(old, stores)
    }
    state.withLock { $0.active = next }
    let superseded = isTakeOver ? [:] : adopt(by: next)
    let reason: ChangeReason =
      isTakeOver
      ? .externalChange : old.location == .signedOut ? .initialSyncChange : .accountChange
    for open in stores {
      let store = open.store
      let opening: KeyValueStore.Reopening = { () throws(KithError) in
        try next.service.open(
          store.view, policy: open.policy, reason: reason,
          superseded: superseded[store.identifier] ?? [])
      }
      do throws(KithError) {
        try opening()
        store.replaceService(by: next.service)
      } catch {
        configuration.logger.error(
          "a store cannot be opened there", metadata: ["code": "\(error.code)"])
        // Not the values of the account before.
        if !isTakeOver { store.view.showNothing(because: reason) }
        store.replaceService(by: next.service) { [weak self, weak store] () throws(KithError) in
          guard let self, let store else { return }
          try self.reopen(store, at: next.service, opening)
        }
      }
    }
  }

  /// Opens a store at its service, unless either has changed meanwhile.
  private func reopen(
    _ store: KeyValueStore, at service: any StoreService, _ opening: KeyValueStore.Reopening
  ) throws(KithError) {
    try switchLock.withLock { _ throws(KithError) in
      guard store.mustReopen, store.service === service else { return }
      try opening()
      store.replaceService(by: service)
    }
  }

  private var unopenedStores: [KeyValueStore] {
    state.withLock { $0.stores.values.map(\.store) }.filter(\.mustReopen)
  }

  private func leave(_ active: ActiveDevice, _ stores: [OpenStore]) {
    for open in stores { active.service.release(open.store.view) }
    do throws(KithError) {
      try active.close()
    } catch {
      configuration.logger.error(
        "the last writes were not made durable", metadata: ["code": "\(error.code)"])
    }
  }

  /// Whether another device is signed in now, the attached node has ended, or the own one is to
  /// yield or to be repaired.
  private func mustLeave(_ active: ActiveDevice) throws(KithError) -> Bool {
    if try directory.location() != active.location { return true }
    switch active.kind {
    case .own(let node): return node.isYielding || active.isDamaged
    case .attached(let node): return node.hasEnded
    }
  }
}
