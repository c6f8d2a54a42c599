internal import KithCore
internal import KithCrypto

extension Simulation {
  /// All that a message makes others believe is committed before its first byte is sent, and its
  /// change sets are written, or, if it `needsSync`, committed too. It holds no key and no value.
  func checkSent(
    _ message: InboundMessage, _ bytes: [UInt8], by device: SimulatedDevice,
    needsSync: Bool = false
  ) throws(Violation) {
    if Self.holdsSecret(bytes) {
      throw Violation(.secrecy, "\(device.name) sent a key or a value in plaintext")
    }
    let disk = device.disk.durable
    switch message.facts {
    case .batch(let store, let changeSets, _):
      let kept = needsSync ? disk : device.disk.written
      for changeSet in changeSets {
        if !needsSync { try checkEarly(changeSet, store, disk, device) }
        try checkKept(changeSet, store, kept, device)
      }
    case .have(let stores):
      for (store, vector) in stores { try checkSent(vector, of: store, disk, by: device) }
    case .records(let records):
      guard records.allSatisfy({ disk.records[$0] != nil }) else {
        throw Violation(.nothingLost, "\(device.name) sent records before they were committed")
      }
    case .other: break
    }
  }

  /// Checks that a vector is on disk.
  func checkSent(
    _ vector: [ChainID: UInt64], of store: StoreIdentifier, _ disk: Snapshot,
    by device: SimulatedDevice
  ) throws(Violation) {
    let durable = disk.stores[store]?.vector ?? [:]
    let isDurable = vector.allSatisfy { chain, sequence in
      durable[chain] ?? 0 >= sequence
        || wasDropped(chain.device, disk, device)
    }
    guard isDurable else {
      throw Violation(
        .nothingLost, "\(device.name) told what it covers before that was committed")
    }
  }

  static func holdsSecret(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { bytes in
      let secret = Array(secret.utf8)
      guard bytes.count >= secret.count else { return false }
      for start in 0...(bytes.count - secret.count) where bytes[start] == secret[0] {
        if bytes[start..<(start + secret.count)].elementsEqual(secret) { return true }
      }
      return false
    }
  }

  /// Whether a revoked author's chains were dropped. One commit may keep and drop their data, and
  /// members that do not know of the revocation still accept it.
  private func wasDropped(
    _ author: DeviceID, _ disk: Snapshot, _ device: SimulatedDevice
  ) -> Bool {
    device.replica?.roster.revocationRecords(of: author)
      .contains { disk.records[$0.id] != nil } ?? false
  }

  /// Checks that the change set, or a later one of its chain, is on disk, and that its author gave
  /// the sequence to no other.
  private func checkKept(
    _ changeSet: ChangeSetHeaderFacts, _ store: StoreIdentifier, _ disk: Snapshot,
    _ device: SimulatedDevice
  ) throws(Violation) {
    let (chain, sequence) = (changeSet.chain, changeSet.reference.sequence)
    let kept = disk.stores[store]?.changeSets ?? [:]
    let isKept =
      kept[changeSet.reference] != nil
      || kept.keys.contains {
        $0.device == chain.device && $0.incarnation == chain.incarnation && $0.sequence >= sequence
      }
    guard isKept || wasDropped(chain.device, disk, device) else {
      throw Violation(.nothingLost, "\(device.name) sent a change set before it was committed")
    }
    // An unnoticed copy and its original may use a sequence twice, until they notice.
    guard chain.device == device.keys.id, !device.wasRestoredUnnoticed, !device.isTraitor else {
      return
    }
    let digest = changeSet.reference.digest
    let given = device.given[store]?[chain]?[sequence]
    guard given ?? digest == digest else {
      throw Violation(.nothingLost, "\(device.name) gave sequence \(sequence) twice")
    }
    device.given[store, default: [:]][chain, default: [:]][sequence] = digest
  }

  /// Checks what a change set rests on that the device sends before it is durable
  /// (`Docs/Decisions/early-sending.md`, "Rules"): a start after the end of the host would know that
  /// it may be lost, its chain has no gap then, and its drafts are lost with it.
  private func checkEarly(
    _ changeSet: ChangeSetHeaderFacts, _ store: StoreIdentifier, _ disk: Snapshot,
    _ device: SimulatedDevice
  ) throws(Violation) {
    let (chain, sequence) = (changeSet.chain, changeSet.reference.sequence)
    let given = device.given[store]?[chain] ?? [:]
    let durable = disk.stores[store]?.vector[chain] ?? 0
    // Those of its earlier incarnations, and of copies, come from others.
    guard chain.device == device.keys.id, chain.incarnation == disk.incarnation,
      given[sequence] == nil, durable < sequence, !device.wasRestoredUnnoticed, !device.isTraitor
    else { return }
    guard disk.earlySending == device.boot else {
      throw Violation(
        .nothingLost, "\(device.name) sent a change set early before its mark was committed")
    }
    guard durable >= sequence - 1 || given[sequence - 1] != nil else {
      throw Violation(
        .nothingLost, "\(device.name) sent sequence \(sequence) before the one before it")
    }
    let drafts = Set(disk.stores[store]?.draftedWrites.map(\.clock) ?? [])
    let isOld = device.replica?.inspect(store)?.slots.values.joined().contains {
      $0.changeSet == changeSet.reference && drafts.contains($0.entry.stamp.clock)
    }
    guard isOld != true else {
      throw Violation(
        .wholeTransactions, "\(device.name) sent a draft early that was committed before")
    }
  }

  /// Notes the latest clock of what peers have and the disk is about to lose. A later clock than early
  /// sending allows was sent before the host's clock was set back.
  func noteLost(on device: SimulatedDevice) {
    let (durable, written) = (device.disk.durable, device.disk.written)
    let wall = device.clock.instant(at: now).wallMilliseconds
    var lost = HybridTime.zero
    for (store, kept) in written.stores {
      // Of an earlier incarnation, such as before the directory was restored, others sent it back.
      for (reference, changeSet) in kept.changeSets
      where reference.device == device.keys.id && reference.incarnation == written.incarnation {
        let given = device.given[store]?[reference.chain]?[reference.sequence]
        guard given == reference.digest, durable.stores[store]?.changeSets[reference] == nil,
          let header = try? ChangeSetHeader(decoding: changeSet.header),
          header.clock.milliseconds <= wall + Limits.earlyMilliseconds
        else { continue }
        lost = max(lost, header.clock)
      }
    }
    guard lost > .zero else { return }
    device.lost = (device.disk, lost, wall)
  }

  /// A start continues after the clocks of change sets that were sent early and lost, unless the host's
  /// clock went back meanwhile.
  func checkLost(_ device: SimulatedDevice) throws(Violation) {
    guard let (disk, clock, wall) = device.lost.take(), disk === device.disk,
      device.clock.instant(at: now).wallMilliseconds >= wall, let replica = device.replica
    else { return }
    guard replica.hybridClock > clock else {
      throw Violation(
        .causality, "\(device.name) started with a clock before what it had sent and lost")
    }
  }

  /// Checks that a write about to be reported durable is on disk, as a draft or published.
  func checkDurable(_ id: WriteID, on device: SimulatedDevice) throws(Violation) {
    guard let write = history.writes[id], let clock = write.clock else { return }
    // Early writes of different keys may have one clock.
    let drafts = device.replica?.inspect(write.store)?.drafts.first { $0.clock == clock }?
      .operations.filter(write.operations.contains)
    guard let drafts, !drafts.isEmpty else { return }
    // A draft that was just stamped again may have its old stamp there.
    let stored = device.disk.durable.stores[write.store]?.draftedWrites.flatMap(\.operations) ?? []
    guard drafts.allSatisfy(stored.contains) else {
      throw Violation(.nothingLost, "\(device.name) acknowledged a write before it was committed")
    }
  }

  /// A clock is persisted with the data that it stamped (`Docs/Protocol.md`, "Clocks, stamps,
  /// claims").
  func checkClock(_ mutations: [Mutation], on device: SimulatedDevice) throws(Violation) {
    let written = device.disk.written.clock
    for case .put(.store(_, .changeSet(let reference)), let row) in mutations
    where reference.device == device.keys.id {
      guard let header = StoredChangeSet(row: row)?.header,
        let clock = try? ChangeSetHeader(decoding: header).clock, clock > written
      else { continue }
      throw Violation(.causality, "\(device.name) forgot the clock of what it stamped")
    }
  }

  /// Promise 8: bytes under way on a connection.
  func checkPipe(_ number: ConnectionNumber, _ end: Int) throws(Violation) {
    guard let bytes = connections[number]?.pipes[end].bytes, bytes > Self.largestPipe else {
      return
    }
    throw Violation(.bounds, "\(bytes) bytes are under way on one connection")
  }

  /// The core allows 8 MiB of batches under way, and the bytes that one step adds.
  private static var largestPipe: Int { 24 << 20 }
}
