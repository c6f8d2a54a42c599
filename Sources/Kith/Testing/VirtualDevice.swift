package import KithCore
internal import KithCrypto
internal import Logging

/// A device without directory, port or thread: the production engine over a test's storage and
/// sessions. Callers do all the work.
package final class VirtualDevice: Sendable {
  let engine: Engine

  package init(
    account: AccountID, keys: DeviceKeys, process: ProcessID, storage: any ReplicaStorage,
    boot: BootID? = nil, clock: @escaping @Sendable () -> Instant
  ) throws(KithError) {
    var logger = Logger(label: "kith.testing")
    logger.logLevel = .critical
    engine = try Engine(
      account: account, keys: keys, process: process, storage: storage, logger: logger,
      boot: boot, clock: clock)
  }

  package func attach(_ transport: any SessionTransport) {
    engine.state.withLock { $0.transports.node = transport }
  }

  package func store(
    _ identifier: StoreIdentifier, policy: Policy
  ) throws(KithError) -> KeyValueStore {
    KeyValueStore(service: engine, view: try engine.open(identifier, policy: policy))
  }

  package func input(_ input: Input) { engine.input(input) }

  /// Passes on a peer's message; a malformed one ends the session. Returns whether it was a full
  /// `Have`, as devices repeat it.
  @discardableResult
  package func receive(_ message: [UInt8], on session: SessionID) -> Bool {
    guard let inbound = engine.check(message, isSerial: true) else {
      engine.state.withLock { $0.transports.node }?.close(session, .protocolViolation)
      return false
    }
    engine.input(.received(session, inbound))
    return inbound.isFullHave
  }

  package func hello() -> Hello {
    let now = engine.clock()
    return engine.read { $0.hello(port: 0, at: now) }
  }

  package var membership: (roster: Roster, keyring: Keyring) {
    engine.read { ($0.roster, $0.keyring) }
  }

  package var hasPulledAll: Bool { engine.read { $0.hasPulledAll } }

  /// When the device is next due, by the monotonic clock.
  package var wakesAtMilliseconds: UInt64? {
    engine.state.withLock { $0.shell.wakesAtMilliseconds }
  }

  /// Does what is due by now: ticks, and retries of storage.
  package func tick() { engine.tick() }

  package func close() throws(KithError) { try engine.close() }
}

extension VirtualDevice {
  /// Shows this device's data in `stores` instead of `other`'s, as `Accounts` does.
  ///
  /// On signing in, `reason` is `initialSyncChange`, and `superseded` has the keys whose writes
  /// lost.
  package func show(
    _ stores: [(store: KeyValueStore, policy: Policy)], insteadOf other: VirtualDevice,
    reason: ChangeReason = .accountChange, superseded: [StoreIdentifier: Set<Key>] = [:]
  ) throws(KithError) {
    for (store, policy) in stores {
      other.engine.release(store.view)
      try engine.open(
        store.view, policy: policy, reason: reason,
        superseded: superseded[store.identifier] ?? [])
      store.replaceService(by: engine)
    }
  }

  /// Adopts the writes of the local stores, whose device is closed, and removes them there. Returns
  /// the keys whose writes lost.
  package func adopt(from local: MemoryStorage) throws(KithError) -> [StoreIdentifier: Set<Key>] {
    try KithError.mapping(local.load()).handOver(from: local) { engine }.superseded
  }
}
