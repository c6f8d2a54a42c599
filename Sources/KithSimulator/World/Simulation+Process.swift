internal import KithCore
internal import KithCrypto

/// A device's process: the production `Shell` over a simulated disk and network.
extension Simulation {
  // MARK: Life and death

  func start(_ device: SimulatedDevice) throws(Violation) {
    guard !device.isRunning, !device.isGone else { return }
    device.life += 1
    drawProcess(of: device)
    trace.note("start", [UInt64(device.number)], at: now)
    var replica = load(device)
    if replica == nil {
      // The person follows the error message and restores a copy.
      guard let copy = device.backups.last else { return giveUp(device) }
      tally.count("damaged disks restored")
      putAtRisk(device)
      device.processesSinceRestore = [device.process.shortName]
      device.disk = copy.copy(isNoticed: true)
      replica = load(device)
    }
    guard let replica else { throw Violation(.nothingLost, "\(device.name)'s copy is damaged") }
    device.shell = Shell(replica)
    try begin(device)
    try adoptLocal(on: device)
    try nextDrain(device)
  }

  private func drawProcess(of device: SimulatedDevice) {
    device.process = ProcessID(keyChance.draw())
    device.processesSinceRestore?.insert(device.process.shortName)
  }

  /// Nil if the disk is damaged.
  private func load(_ device: SimulatedDevice) -> Replica? {
    guard let outline = try? device.disk.outline() else { return nil }
    let seed = keyChance.next()
    let disk = device.disk
    var replica = try? Replica(
      account: account, keys: device.keys, outline: outline, process: device.process,
      entropy: SeededEntropy(seed: seed)
    ) { (keys) throws(StorageError) in try disk.rows(keys) }
    // In some runs answers come in pieces of a few change sets; elsewhere no answer is large
    // enough. The last piece covers for all, so no session may lose or reorder one.
    if schedule.seed.isMultiple(of: 3), faults.isDisjoint(with: [.silentLoss, .reordering]) {
      replica?.pieceBytes = 2 << 10
    }
    if let limit = setup.removalLimit { replica?.removalLimit = limit }
    if let bytes = setup.carriers?.levelBytes { replica?.levelBytes = bytes }
    return replica
  }

  private func begin(_ device: SimulatedDevice) throws(Violation) {
    device.wakesAt = nil
    device.views = [:]
    let isCopy = device.disk.isCopy
    try hand(.start(isCopy: isCopy, boot: device.boot), to: device, showing: false)
    try checkLost(device)
    for store in device.replica?.storeIdentifiers ?? [] {
      device.views[store] = device.replica?.view(of: store)
    }
    try hand(.clockStatus(isSynchronised: device.isClockSynchronised), to: device)
    for (store, policy) in device.opened.sorted(by: { $0.key < $1.key }) {
      try hand(.open(store, policy), to: device)
    }
    if device.join == nil { try attachCarriers(of: device) }
  }

  func kill(_ device: SimulatedDevice) {
    guard device.isRunning else { return }
    tally.count("processes killed")
    trace.note("kill", [UInt64(device.number)], at: now)
    if !device.writing.isEmpty {
      let written = Int.random(in: 0...device.writing.count, using: &diskChance)
      if written < device.writing.count { tally.count("torn writes") }
      device.disk.crash(writing: device.writing, written: written)
    }
    if Bool.random(using: &diskChance) { endHost(of: device) }
    device.writing = []
    device.hasSentUnsynced = false
    device.life += 1
    device.shell = nil
    device.isDrainPlanned = false
    device.isPaused = false
    device.held = []
    device.fuse = nil
    device.syncEnd = .succeeds
    device.adoptions = [:]
    device.awaited = []
    device.operations = [:]
    device.goesOffFor = nil
    closeAll(of: device)
    if device.join != nil { discard(device) }
  }

  /// The power fails: what was written and not synced may be lost.
  private func endHost(of device: SimulatedDevice) {
    let count = device.disk.unsyncedCount
    let kept = Int.random(in: 0...count, using: &diskChance)
    if kept < count {
      tally.count(device.hasSentUnsynced ? "commits lost after sending" : "commits lost")
      noteLost(on: device)
    }
    device.disk.crashHost(keeping: kept)
    device.boot = BootID(keyChance.draw())
  }

  /// Removes a device with its directory: data that only it has is lost.
  func giveUp(_ device: SimulatedDevice) {
    putAtRisk(device)
    kill(device)
    device.isGone = true
  }

  /// Data that only this device has may be lost from now on.
  func putAtRisk(_ device: SimulatedDevice) {
    history.putAtRisk(on: device.number)
    reference.giveUp(device.number)
  }

  func resume(_ device: SimulatedDevice) {
    guard device.isPaused else { return }
    device.isPaused = false
    for event in device.held { queue.add(event, at: now) }
    device.held = []
    for number in connections.keys.sorted() { unstall(number, to: device.number) }
  }

  // MARK: Inputs and effects

  /// Hands an input to the shell, shows the changes, and plans the remaining work.
  @discardableResult
  func hand(
    _ input: Input, to device: SimulatedDevice, coalesces: Bool = false, showing: Bool = true
  ) throws(Violation) -> [Effect] {
    try step(device, input, showing: showing) { shell, instant in
      shell?.handle(input, coalesces: coalesces, at: instant)
    }
  }

  private func step(
    _ device: SimulatedDevice, _ input: Input, showing: Bool = true,
    _ take: (inout Shell?, Instant) -> Shell.Response?
  ) throws(Violation) -> [Effect] {
    guard device.isRunning else { return [] }
    let instant = device.clock.instant(at: now)
    let clocks = draftClocks(of: device, before: input)
    let waiting = device.shell?.outbox.count ?? 0
    guard case .handled(var effects) = take(&device.shell, instant) else {
      tally.count("inputs while a disk failed")
      return []
    }
    trace.note(input.name, [UInt64(device.number)], at: now)
    if !clocks.isEmpty { try checkRestamping(of: device, from: clocks) }
    tally.count("steps")
    if showing { try show(effects, on: device, after: input) }
    effects += device.shell?.outbox.dropFirst(waiting) ?? []
    // A program reads values only after its process has started.
    if showing { try checkStep(device, input, effects) }
    try nextDrain(device)
    return effects
  }

  private func show(
    _ effects: [Effect], on device: SimulatedDevice, after input: Input
  ) throws(Violation) {
    for effect in effects {
      switch effect {
      case .view(let change): try show(change, on: device, after: input)
      case .report(let report):
        tally.count(report.name)
        guard case .revoked = report else { break }
        for number in device.carriers { try checkHeld(by: device, on: number) }
      default: break
      }
    }
  }

  private func show(
    _ change: ViewChange, on device: SimulatedDevice, after input: Input
  ) throws(Violation) {
    if case .flush = input {
      throw Violation(.notifications, "publishing changed what \(device.name) shows")
    }
    for (key, value) in change.changes {
      if device.views[change.store]?[key] == value {
        throw Violation(.notifications, "\(device.name) was told of \(key), which did not change")
      }
      device.views[change.store, default: [:]][key] = value
    }
    trace.note("view", [UInt64(device.number), UInt64(change.changes.count)], at: now)
    for (key, value) in change.changes {
      trace.note(bytes: Array(key.text.utf8) + (value?.bytes ?? []))
    }
  }

  // MARK: Time

  /// Plans nothing if work is about to begin: the shell may wait for that work.
  private func planWake(_ device: SimulatedDevice) {
    guard !device.isDrainPlanned, let reading = device.shell?.wakesAtMilliseconds,
      reading != device.wakesAt
    else { return }
    device.wakesAt = reading
    let wait = device.clock.wait(untilMonotonic: reading, at: now)
    queue.add(.wake(device.number, life: device.life, atMonotonic: reading), at: now + wait)
  }

  func wake(_ device: SimulatedDevice, _ reading: UInt64) throws(Violation) {
    guard device.wakesAt == reading else { return }
    device.wakesAt = nil
    if device.clock.wait(untilMonotonic: reading, at: now) <= 1_000 {
      _ = try step(device, .tick) { shell, instant in
        (shell?.wake(at: instant)).map(Shell.Response.handled)
      }
    }
    try nextDrain(device)
  }

  // MARK: Work

  func nextDrain(_ device: SimulatedDevice) throws(Violation) {
    defer { planWake(device) }
    guard let shell = device.shell, !shell.isBusy, !device.isDrainPlanned,
      shell.hasWork || shell.isReloadDue(at: device.clock.instant(at: now))
    else { return }
    device.isDrainPlanned = true
    let delay = UInt64.random(in: 0...300, using: &diskChance)
    queue.add(.drain(device.number, life: device.life), at: now + delay)
  }

  func drain(_ device: SimulatedDevice) throws(Violation) {
    if device.shell?.wantsFlush == true { try hand(.flush, to: device) }
    device.isDrainPlanned = false
    defer { planWake(device) }
    switch device.shell?.next(at: device.clock.instant(at: now)) {
    case .idle, .busy, nil: return
    case .reload: try reload(device)
    case .round(var round):
      do throws(StorageError) {
        try round.fill(from: device.disk)
      } catch {
        return try fail(device, error)
      }
      let life = device.life
      try act(on: round.beforeCommit, device)
      guard device.life == life else { return }
      device.writing = round.mutations
      guard !device.writing.isEmpty else { return try end(round, on: device) }
      let time = UInt64.random(in: 10...50, using: &diskChance)
      queue.add(.written(device.number, life: life, round), at: now + time)
    }
  }

  func write(_ round: Round, on device: SimulatedDevice) throws(Violation) {
    if burn(device) { return }
    let life = device.life
    do throws(StorageError) {
      try device.disk.write(device.writing)
    } catch {
      return try fail(device, error)
    }
    trace.note("write", [UInt64(device.number), UInt64(device.writing.count)], at: now)
    try checkClock(device.writing, on: device)
    device.writing = []
    device.hasSentUnsynced = round.sendsEarly(of: device.keys.id)
    tally.count("messages sent early", round.earlySends.count)
    try act(on: round.earlySends[...], device)
    guard device.life == life else { return }
    device.syncEnd = round.earlySends.isEmpty ? .succeeds : drawSyncEnd()
    let isSlow =
      device.syncEnd != .succeeds || Int.random(in: 0..<100, using: &diskChance) == 0
    let slow: UInt64 = isSlow ? 40 : 1
    let time = UInt64.random(in: 50...max(51, setup.commitMicroseconds), using: &diskChance) * slow
    queue.add(.committed(device.number, life: life, round), at: now + time)
  }

  /// Between an early send and its sync, power and disks fail often, and so late that peers have what
  /// was sent.
  private func drawSyncEnd() -> SyncEnd {
    if isHealing { return .succeeds }
    if faults.contains(.crash), Int.random(in: 0..<24, using: &diskChance) == 0 {
      return .crashes(downMicroseconds: UInt64.random(in: 10_000...8_000_000, using: &diskChance))
    }
    if faults.contains(.diskFull), Int.random(in: 0..<40, using: &diskChance) == 0 { return .fails }
    return .succeeds
  }

  func commit(_ round: Round, on device: SimulatedDevice) throws(Violation) {
    if burn(device) { return }
    if case .crashes(let down) = device.syncEnd { return crash(device, for: down) }
    if device.syncEnd == .fails { noteLost(on: device) }
    do throws(StorageError) {
      try device.disk.sync(fails: device.syncEnd == .fails)
    } catch {
      return try fail(device, error)
    }
    trace.note("commit", [UInt64(device.number), UInt64(round.mutations.count)], at: now)
    device.hasSentUnsynced = false
    try end(round, on: device)
  }

  private func end(_ round: Round, on device: SimulatedDevice) throws(Violation) {
    let life = device.life
    try act(on: round.afterCommit, device)
    guard device.life == life, let aftermath = device.shell?.committed() else { return }
    if aftermath.healthChange == .recovered { tally.count("disks that recovered") }
    try tell(aftermath.settled, on: device)
    try nextDrain(device)
  }

  func expect(_ write: WriteID, on device: SimulatedDevice) {
    device.shell?.expect(write)
    device.awaited.insert(write.rawValue)
  }

  /// Writes become durable in order, so a barrier follows all writes that were accepted before it.
  private func tell(_ settled: [WriteID], on device: SimulatedDevice) throws(Violation) {
    device.awaited.subtract(settled.map(\.rawValue))
    for write in settled {
      switch device.shell?.takeResult(of: write) {
      case .success:
        if let earlier = device.awaited.min(), earlier < write.rawValue {
          throw Violation(
            .nothingLost, "\(device.name) acknowledged \(write.rawValue) before \(earlier)")
        }
        noteAdopted(write, on: device)
        try checkDurable(write, on: device)
        history.makeDurable(write)
      case .failure: noteAdoptionFailed(write, on: device)
      case nil: throw Violation(.nothingLost, "\(device.name) settled a write without a result")
      }
    }
  }

  /// Carries out, in order, effects that need no further commit.
  private func act(on effects: ArraySlice<Effect>, _ device: SimulatedDevice) throws(Violation) {
    let life = device.life
    for effect in effects {
      if case .persist = effect { continue }
      if burn(device) { return }
      switch effect {
      case .send(let session, let bytes), .sendEarly(let session, let bytes):
        try send(bytes, on: session, from: device)
      case .sendStored(let session, let batch):
        var messages: [[UInt8]] = []
        let missing = try? batch.forEachMessage(from: device.disk) { messages.append($0) }
        if missing ?? 0 > 0 { throw Violation(.convergence, "a batch lacks what its sender keeps") }
        for message in messages { try send(message, on: session, from: device) }
      case .awaitDrain(let session): awaitDrain(on: session, of: device)
      case .close(let session, let reason): close(session, of: device, because: reason)
      case .promote(let session): promote(session, of: device)
      case .leftBehind(let behind):
        device.overlay?.setLeftBehind(behind)
        if !isOverlay { reach(behind, from: device) }
      case .pulledAll(let session): try finishJoin(of: device, on: session)
      case .carrier(let carrier, let order): try begin(order, of: device, on: carrier)
      default: break
      }
      guard device.life == life else { return }
    }
  }

  /// Whether the process dies here.
  private func burn(_ device: SimulatedDevice) -> Bool {
    guard let fuse = device.fuse else { return false }
    guard fuse.effects <= 0 else {
      device.fuse?.effects -= 1
      return false
    }
    crash(device, for: fuse.downMicroseconds)
    return true
  }

  private func crash(_ device: SimulatedDevice, for downMicroseconds: UInt64) {
    kill(device)
    queue.add(.start(device.number, life: device.life), at: now + downMicroseconds)
  }

  // MARK: Disks that refuse

  private func fail(_ device: SimulatedDevice, _ error: StorageError) throws(Violation) {
    tally.count("commits that failed")
    trace.note("fail", [UInt64(device.number)], at: now)
    device.writing = []
    device.hasSentUnsynced = false
    guard
      let aftermath = device.shell?.failed(error, at: device.clock.instant(at: now))
    else { return }
    if aftermath.healthChange == .failed { closeAll(of: device) }
    if device.join != nil { return kill(device) }
    try tell(aftermath.settled, on: device)
    try nextDrain(device)
  }

  /// Goes back to the disk's content. Programs are told of the undone changes.
  private func reload(_ device: SimulatedDevice) throws(Violation) {
    drawProcess(of: device)
    guard let replica = load(device) else { return giveUp(device) }
    let isCopy = device.disk.isCopy
    let clocks = draftClocks(of: replica)
    guard
      let aftermath = device.shell?.reopen(
        replica, isCopy: isCopy, at: device.clock.instant(at: now))
    else { return }
    trace.note("reload", [UInt64(device.number)], at: now)
    if !clocks.isEmpty { try checkRestamping(of: device, from: clocks) }
    let start = Input.start(isCopy: isCopy)
    try show(aftermath.effects, on: device, after: start)
    try checkStep(device, start, aftermath.effects)
    try checkUndone(on: device)
    try tell(aftermath.settled, on: device)
    try nextDrain(device)
  }

  /// The told changes must lead from the values that programs saw to the durable ones.
  private func checkUndone(on device: SimulatedDevice) throws(Violation) {
    for (store, view) in device.views.sorted(by: { $0.key < $1.key })
    where device.replica?.view(of: store) != view {
      throw Violation(.notifications, "\(device.name) shows what was not durable in \(store)")
    }
  }
}

extension Input {
  /// For the trace.
  var name: String {
    switch self {
    case .start: "in.start"
    case .clockStatus: "in.clockStatus"
    case .acceptTime: "in.acceptTime"
    case .keepHistory: "in.keepHistory"
    case .open: "in.open"
    case .write: "in.write"
    case .adopt: "in.adopt"
    case .admit: "in.admit"
    case .join: "in.join"
    case .flush: "in.flush"
    case .takeRefusals: "in.takeRefusals"
    case .acceptLoss: "in.acceptLoss"
    case .learn: "in.learn"
    case .rename: "in.rename"
    case .revoke: "in.revoke"
    case .forgetAddress: "in.forgetAddress"
    case .connected: "in.connected"
    case .received: "in.received"
    case .writable: "in.writable"
    case .drained: "in.room"
    case .disconnected: "in.disconnected"
    case .carrier: "in.carrier"
    case .tick: "in.tick"
    }
  }
}

extension Report {
  /// For the tally.
  var name: String {
    switch self {
    case .rejected: "change sets rejected"
    case .quarantined: "entries quarantined"
    case .fork: "forks"
    case .clone: "clones met"
    case .newIncarnation: "new incarnations"
    case .tooManyIncarnations: "devices out of incarnations"
    case .divergence: "divergences"
    case .policyMismatch: "policies that differed"
    case .clocksDiffer: "clocks that differed"
    case .clocksAgree: "clocks that agreed again"
    case .clockSetBack: "clocks set back"
    case .newGeneration: "generations of clocks"
    case .noGenerationLeft: "clocks without a generation left"
    case .notStored: "batches that storage lacked a part of"
    case .publishedAhead: "change sets from the future"
    case .generationTooLate: "change sets of a generation that does not count"
    case .misdirected: "change sets for another store"
    case .authorOverLimit: "authors over their limit"
    case .revoked: "revocations learnt"
    case .damaged: "damage found"
    case .regained: "damage repaired"
    case .lossAccepted: "loss accepted"
    }
  }
}
