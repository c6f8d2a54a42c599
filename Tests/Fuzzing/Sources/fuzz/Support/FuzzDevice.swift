@testable import KithCrypto

@testable import KithCore

/// A replica with its disk, and the messages to programs and peers. A value: copying it costs next
/// to nothing, and so does beginning every input with the same one.
struct FuzzDevice {
  let index: Int
  var replica: Replica
  var disk: Snapshot
  /// The views of programs, updated by view changes alone.
  var views: [StoreIdentifier: [Key: EncodedValue]] = [:]
  /// The messages that were sent and that nobody has taken, by session.
  var sent: [SessionID: [[UInt8]]] = [:]
  var closed: Set<SessionID> = []
  var awaitsDrain: Set<SessionID> = []
  var reports: [Report] = []

  /// Devices that have opened the store and met nobody.
  static let templates: [FuzzDevice] = FuzzAccount.shared.devices.indices.map { index in
    var device = FuzzDevice(index: index, disk: FuzzAccount.shared.disk(), process: 1)
    device.start(at: FuzzAccount.start)
    device.perform(.open(FuzzAccount.store, FuzzAccount.policy), at: FuzzAccount.start)
    // Worked out once, not with each input.
    if let epoch = device.replica.keyring.current {
      for author in device.replica.roster.sortedMembers {
        _ = device.replica.members.keyring.sharedBox(epoch: epoch.id, author: author)
      }
    }
    return device
  }

  /// A device made of its disk's contents.
  init(index: Int, disk: Snapshot, process: UInt8) {
    let account = FuzzAccount.shared
    self.index = index
    self.disk = disk
    do {
      replica = try Replica(
        account: account.id, keys: account.devices[index], snapshot: disk,
        process: ProcessID(try Digest128([UInt8](repeating: process, count: 16))),
        entropy: SeededEntropy(seed: UInt64(process) << 8 | UInt64(index)))
    } catch {
      fatalError("a disk makes no replica: \(error)")
    }
  }

  /// Begins to serve; programs see what is shown from then on.
  private mutating func start(at instant: Instant) {
    perform(.start(isCopy: false), at: instant)
    for store in replica.storeIdentifiers { views[store] = replica.view(of: store) }
  }

  /// Hands in an input and carries out its effects.
  mutating func perform(_ input: Input, at instant: Instant) {
    let effects = replica.handle(input, at: instant)
    var bytes = 0
    for effect in effects {
      switch effect {
      case .persist(let mutations):
        for mutation in mutations { disk.apply(mutation) }
      case .send(let session, let message), .sendEarly(let session, let message):
        bytes += message.count
        checkIsKept(message)
        sent[session, default: []].append(message)
      case .sendStored(let session, let batch):
        let disk = disk
        var messages: [[UInt8]] = []
        let missing = try? batch.forEachMessage({ $0.map { disk[$0] } }) {
          messages.append($0)
        }
        require(missing == 0, "a batch of what the disk lacks")
        for message in messages { checkIsKept(message) }
        sent[session, default: []] += messages
      case .close(let session, _): closed.insert(session)
      case .awaitDrain(let session): awaitsDrain.insert(session)
      case .view(let change):
        for (key, value) in change.changes { views[change.store, default: [:]][key] = value }
      case .report(let report):
        if reports.count < 64 { reports.append(report) }
      case .promote, .accepted, .refused, .refusedStore, .refusedMembership, .durable, .pulledAll,
        .progress, .addresses, .leftBehind, .wake, .carrier:
        break
      }
    }
    // One input makes a device do only as much as its data and the input's size allow.
    require(effects.count < 20_000, "\(effects.count) effects of one input")
    require(bytes < 64 << 20, "\(bytes) bytes sent for one input")
  }

  /// A change set is on the disk before its first byte leaves
  /// (`Docs/Decisions/database-layout.md`).
  private func checkIsKept(_ message: [UInt8]) {
    require(message.count <= Limits.messageBytes, "a message that peers refuse")
    guard let wire = try? WireMessage(serializedBytes: message) else {
      fatalError("a message that nobody reads")
    }
    guard case .batch(let batch) = wire.body, let store = StoreIdentifier(batch.store) else {
      return
    }
    for changeSet in batch.changeSets {
      guard let header = try? ChangeSetHeader(decoding: [UInt8](changeSet.header)) else {
        fatalError("a header that nobody reads")
      }
      let reference = ChangeSetReference(
        device: header.chain.device, incarnation: header.chain.incarnation,
        sequence: header.sequence, digest: Blake2b.digest256([UInt8](changeSet.header)))
      let later = disk.stores[store]?.changeSets.keys.contains {
        $0.device == reference.device && $0.incarnation == reference.incarnation
          && $0.sequence >= reference.sequence
      }
      require(later == true, "sent before it was committed")
    }
  }

  mutating func flush(at instant: Instant) {
    if replica.needsFlush { perform(.flush, at: instant) }
  }

  /// Kills the device and starts it from its disk, which must give it again.
  mutating func restart(at instant: Instant, process: UInt8) {
    flush(at: instant)
    var stores: [StoreIdentifier: (view: [Key: EncodedValue], digest: Digest256)] = [:]
    for (identifier, store) in replica.stores {
      var store = store
      stores[identifier] = (replica.view(of: identifier), store.digest())
    }
    self = FuzzDevice(index: index, disk: disk, process: process)
    start(at: instant)
    require(replica.counters.damaged == 0, "something stored cannot be read")
    require(Set(stores.keys) == Set(replica.stores.keys), "a store was forgotten")
    for (identifier, expected) in stores {
      require(replica.view(of: identifier) == expected.view, "another view after a restart")
      var store = replica.stores[identifier]
      require(store?.digest() == expected.digest, "another digest after a restart")
    }
  }

  /// The other end of a session with a device, as the handshake would show it.
  static func peer(
    _ keys: DeviceKeys, hello: Hello, isDialled: Bool, isMembershipOnly: Bool = false
  ) -> SessionPeer {
    SessionPeer(
      transportKey: keys.transportPublicKey, hello: hello, isDialled: isDialled,
      address: "127.0.0.1:4114", isMembershipOnly: isMembershipOnly)
  }
}
