import Foundation
import Synchronization

@testable import Kith
@testable import KithCore
@testable import KithCrypto
@testable import KithStorage

/// Two devices of one account over real databases. Their messages are carried by the calling thread,
/// and time stands still, so that each run executes the same work.
final class DevicePair {
  static let store = "bench"
  static let session = SessionID(rawValue: 1)

  private(set) var devices: [VirtualDevice] = []
  private(set) var stores: [KeyValueStore] = []
  private let links = [RecordingLink(), RecordingLink()]
  private let opened: [OpenDevice]
  private let account: AccountID
  private let records: [Mutation]

  init(in root: URL) throws {
    var entropy = SeededEntropy(seed: 1)
    let first = DeviceSecrets(random: &entropy)
    let second = DeviceSecrets(random: &entropy)
    let (founder, joiner) = (first.makeKeys(), second.makeKeys())
    let (account, founding) = try Account.create(
      recovery: RecoveryKey(entropy: &entropy), keys: founder, name: "first", issued: 1,
      entropy: &entropy)
    var roster = Roster(account: account)
    _ = roster.learn(all: founding)
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: founder)
    let joined = try JoinRequest.accept(
      JoinRequest.make(account: account, keys: joiner, name: "second", issued: 2), roster: roster,
      keyring: keyring, keys: founder, entropy: &entropy)
    records = (founding + joined).map { Mutation.put(.record($0.id), $0.encoded) }
    self.account = account
    opened = [
      try Self.make(root.appending(path: "first").path, first, records),
      try Self.make(root.appending(path: "second").path, second, records),
    ]
    for number in 0..<2 { devices.append(try start(number)) }
  }

  private static func make(
    _ path: String, _ secrets: consuming DeviceSecrets, _ records: [Mutation]
  ) throws -> OpenDevice {
    let reserved = try DeviceDirectory.reserve(path)
    return try DeviceDirectory.prepare(in: reserved, secrets: secrets, initial: records).open()
  }

  /// Makes a device of what its database, or another storage, holds.
  func start(_ number: Int, over storage: (any ReplicaStorage)? = nil) throws -> VirtualDevice {
    var entropy = SeededEntropy(seed: 2 + UInt64(number))
    let device = try VirtualDevice(
      account: account, keys: opened[number].keys, process: ProcessID(entropy.draw()),
      storage: storage ?? opened[number].storage,
      clock: { Instant(wallMilliseconds: 1_800_000_000_000, monotonicMilliseconds: 1_000_000) })
    device.attach(links[number])
    return device
  }

  /// Opens the store on both devices.
  func open() throws {
    guard let store = StoreIdentifier(Self.store) else { preconditionFailure("a valid name") }
    stores = try devices.map { try $0.store(store, policy: .standard) }
  }

  /// Runs a body in a session with a second device that forgets everything: writes without a peer
  /// would be published later, in few change sets.
  func withWitness(_ body: () throws -> Void) throws {
    let memory = MemoryStorage()
    try memory.commit(records)
    let second = devices[1]
    devices[1] = try start(1, over: memory)
    connect()
    carry()
    try body()
    carry()
    for device in devices { device.input(.disconnected(Self.session)) }
    for link in links { _ = link.takeAll() }
    devices[1] = second
  }

  func connect() {
    let keys = opened.map(\.keys)
    for side in 0..<2 {
      let peer = SessionPeer(
        transportKey: keys[1 - side].transportPublicKey, hello: devices[1 - side].hello(),
        isDialled: side == 0, address: "bench:\(side)")
      devices[side].input(.connected(Self.session, peer))
    }
  }

  /// Carries messages until neither device has any.
  func carry() {
    while true {
      let waiting = links.map { $0.takeAll() }
      if waiting.allSatisfy(\.isEmpty) { return }
      for (side, events) in waiting.enumerated() {
        for event in events { pass(event, from: side) }
      }
    }
  }

  /// The messages that a device wants to send.
  func takeAll(from side: Int) -> [RecordingLink.Event] { links[side].takeAll() }

  func pass(_ event: RecordingLink.Event, from side: Int) {
    switch event {
    case .message(let bytes): devices[1 - side].receive(bytes, on: Self.session)
    case .drained: devices[side].input(.drained(Self.session))
    }
  }

  func storage(_ number: Int) -> SQLiteStorage { opened[number].storage }
}

/// Keeps what a device sends.
final class RecordingLink: SessionTransport {
  enum Event {
    case message([UInt8])
    case drained
  }

  private let waiting = Mutex<[Event]>([])

  func takeAll() -> [Event] {
    waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
  }

  func send(_ messages: [[UInt8]], to session: SessionID) {
    waiting.withLock { waiting in
      for message in messages { waiting.append(.message(message)) }
    }
  }

  func awaitDrain(_ session: SessionID) { waiting.withLock { $0.append(.drained) } }
  func close(_ session: SessionID, _ reason: CloseReason) {}
  func closeAll() {}
}
