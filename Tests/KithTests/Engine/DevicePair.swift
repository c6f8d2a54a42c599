import KithCore
import KithCrypto
import KithTestSupport
import Synchronization

@testable import Kith

/// Two devices of one account in one session, whose messages the test carries; the first is over a
/// storage that can be held and fail.
final class DevicePair: Sendable {
  let devices: [VirtualDevice]
  let transports = [RecordingTransport(), RecordingTransport()]
  let storage: FailingStorage
  private let keys: [DeviceKeys]
  private let time = EngineFixture.TestTime()

  init() throws {
    // A clock that cannot be right would change how they publish.
    time.milliseconds.store(1_800_000_000_000, ordering: .relaxed)
    var entropy = SeededEntropy(seed: 11)
    let founder = Founder(devices: 2, entropy: &entropy)
    let disk = founder.members[0].snapshot
    keys = founder.members.map(\.keys)
    storage = FailingStorage(MemoryStorage(disk))
    var devices: [VirtualDevice] = []
    for (keys, storage) in zip(keys, [storage, MemoryStorage(disk)] as [any ReplicaStorage]) {
      devices.append(
        try VirtualDevice(
          account: founder.account, keys: keys, process: ProcessID(entropy.draw()),
          storage: storage, boot: BootID(Digest128 { _ in }), clock: { [time] in time.now }))
    }
    self.devices = devices
    for (device, transport) in zip(devices, transports) { device.attach(transport) }
  }

  /// A store of both devices.
  func stores(_ name: String = "com.example.test") throws -> [KeyValueStore] {
    guard let identifier = StoreIdentifier(name) else { throw TimedOut() }
    return try devices.map { try $0.store(identifier, policy: .standard) }
  }

  /// Connects the devices, which get a first value. After it nothing waits for the mark of early
  /// sending.
  func meet() throws {
    connect()
    carry()
    try stores()[0].set(0, forKey: "n")
    carry()
  }

  func advance(milliseconds: UInt64) {
    time.milliseconds.wrappingAdd(milliseconds, ordering: .relaxed)
  }

  /// Begins a session.
  func connect() {
    for side in 0..<2 {
      devices[side].input(
        .connected(
          SessionID(rawValue: 1),
          SessionPeer(
            transportKey: keys[1 - side].transportPublicKey, hello: devices[1 - side].hello(),
            isDialled: side == 0, address: "virtual:\(side)")))
    }
  }

  /// Carries messages until neither has any.
  func carry() {
    while true {
      let waiting = transports.map { $0.takeAll() }
      if waiting.allSatisfy(\.isEmpty) { return }
      for (side, events) in waiting.enumerated() {
        for event in events {
          switch event {
          case .message(let bytes):
            devices[1 - side].receive(bytes, on: SessionID(rawValue: 1))
          case .drained: devices[side].input(.drained(SessionID(rawValue: 1)))
          }
        }
      }
    }
  }
}

/// Keeps what a device sends.
final class RecordingTransport: SessionTransport {
  enum Event {
    case message([UInt8])
    case drained
  }

  private struct State {
    var waiting: [Event] = []
    /// How many messages each write had.
    var writes: [Int] = []
    var closings = 0
    var onWrite: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// How many messages wait to be carried.
  var messages: Int {
    state.withLock { $0.waiting.count { if case .message = $0 { true } else { false } } }
  }

  /// How often the device has ended all its sessions.
  var closings: Int { state.withLock { $0.closings } }

  func takeAll() -> [Event] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
  }

  /// Calls back at each write. Returns the numbers of messages of the writes until now.
  @discardableResult
  func observe(_ onWrite: (@Sendable () -> Void)?) -> [Int] {
    state.withLock { state in
      defer { (state.writes, state.onWrite) = ([], onWrite) }
      return state.writes
    }
  }

  func send(_ messages: [[UInt8]], to session: SessionID) {
    let onWrite = state.withLock { state in
      state.waiting += messages.map { .message($0) }
      state.writes.append(messages.count)
      return state.onWrite
    }
    onWrite?()
  }
  func awaitDrain(_ session: SessionID) { state.withLock { $0.waiting.append(.drained) } }
  func close(_ session: SessionID, _ reason: CloseReason) {}
  func closeAll() { state.withLock { $0.closings += 1 } }
}
