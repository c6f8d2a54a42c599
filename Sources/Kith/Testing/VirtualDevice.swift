package import KithCore
internal import KithCrypto
internal import Logging

/// A device without a directory, a port or a thread: the engine that programs use, over storage and
/// sessions that a test gives it. Whoever calls does the work; there is nothing to wait for.
package final class VirtualDevice: Sendable {
  /// What the sessions of a virtual device are made of.
  package protocol Link: AnyObject, Sendable {
    /// Sends a message after those before it.
    func send(_ message: [UInt8], on session: SessionID)
    /// Wants `Input.room` once what was sent on the session has arrived.
    func awaitRoom(on session: SessionID)
    /// Ends a session.
    func close(_ session: SessionID)
    /// Ends all sessions.
    func closeAll()
  }

  let engine: Engine

  /// Makes a device of what storage holds, and starts it.
  ///
  /// - Throws: ``KithError`` with a storage code.
  package init(
    account: AccountID, keys: DeviceKeys, process: ProcessID, storage: any ReplicaStorage,
    clock: @escaping @Sendable () -> Instant
  ) throws(KithError) {
    var logger = Logger(label: "kith.testing")
    logger.logLevel = .critical
    engine = try Engine(
      account: account, keys: keys, process: process, storage: storage, logger: logger,
      clock: clock)
  }

  /// Sends over a link from here on.
  package func attach(_ link: any Link) {
    engine.state.withLock { $0.link = Adapter(link: link) }
  }

  /// A store of the account, which is begun if it is new.
  package func store(
    _ identifier: StoreIdentifier, policy: Policy
  ) throws(KithError) -> KeyValueStore {
    KeyValueStore(backing: engine, view: try engine.open(identifier, policy: policy))
  }

  /// Hands an input to the core, and does what it wants done.
  package func input(_ input: Input) { engine.input(input) }

  /// Hands over a message from a peer; one that is malformed ends the session.
  package func receive(_ message: [UInt8], on session: SessionID) {
    guard let inbound = InboundMessage(decoding: message, account: engine.account) else {
      return engine.state.withLock { $0.link }?.close(session, .protocolViolation) ?? ()
    }
    engine.input(.received(session, inbound))
  }

  /// What the device says of itself in a handshake.
  package func hello() -> Hello {
    let now = engine.clock()
    return engine.read { $0.hello(port: 0, at: now) }
  }

  /// The membership records and epochs that the device holds.
  package var membership: (roster: Roster, keyring: Keyring) {
    engine.read { ($0.roster, $0.keyring) }
  }

  /// Whether it joins and has pulled all that its inviter has.
  package var hasPulledAll: Bool { engine.read { $0.hasPulledAll } }

  /// When the core wants a tick, by the monotonic clock in milliseconds.
  package var tickAtMilliseconds: UInt64? { engine.state.withLock { $0.tickAtMilliseconds } }

  /// Does what is due by now: ticks, and storage that is to be tried again.
  package func keepTime() {
    engine.tickIfDue()
    engine.retryIfDue()
    engine.drainIfIdle()
  }

  /// Makes everything durable and ends all sequences.
  package func close() throws(KithError) { try engine.close() }
}

/// Gives an engine the link of a test.
private final class Adapter: SessionLink {
  private let link: any VirtualDevice.Link

  init(link: any VirtualDevice.Link) {
    self.link = link
  }

  func send(_ message: [UInt8], to session: SessionID) { link.send(message, on: session) }
  func awaitRoom(_ session: SessionID) { link.awaitRoom(on: session) }
  func close(_ session: SessionID, _ reason: CloseReason) { link.close(session) }
  func closeAll() { link.closeAll() }
  func pauseReading(_ session: SessionID, _ isPaused: Bool) {}
  func setAddresses(_ addresses: [DeviceID: [String]]) {}
  func setLeftBehind(_ devices: [DeviceID]) {}
  func promote(_ session: SessionID) {}
}
