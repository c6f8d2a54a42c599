internal import KithCore
internal import KithCrypto

/// A device's process: the shell around the core, as the engine of `Kith` is one. Reports what the
/// core wants shown at once, commits what waits in one step, and does the rest in order after it.
extension Simulation {
  // MARK: Life and death

  /// Starts a device's process from its disk.
  func start(_ device: SimulatedDevice) throws(Violation) {
    guard !device.isRunning, !device.isGone else { return }
    device.life += 1
    device.process = ProcessID(keyChance.draw())
    device.hasFailed = false
    device.failedAttempts = 0
    trace.note("start", [UInt64(device.number)], at: now)
    if !load(device) {
      // What the message says to do: restore a copy.
      guard let copy = device.backups.last else { return giveUp(device) }
      tally.count("damaged disks restored")
      putAtRisk(device)
      device.wasRestored = true
      device.disk = copy.copy(isNoticed: true)
      guard load(device) else { throw Violation(.nothingLost, "\(device.name)'s copy is damaged") }
    }
    try begin(device)
    try adoptLocal(on: device)
    try nextDrain(device)
  }

  /// Makes a replica of what the disk holds; false where that is damaged.
  private func load(_ device: SimulatedDevice) -> Bool {
    guard let outline = try? device.disk.outline() else { return false }
    let seed = keyChance.next()
    let disk = device.disk
    device.replica = try? Replica(
      account: account, keys: device.keys, outline: outline, process: device.process,
      entropy: SeededEntropy(seed: seed)
    ) { (store, reference) throws(StorageError) in try disk.changeSet(reference, in: store) }
    // In some runs answers come in pieces of a few change sets; elsewhere none is large enough.
    if schedule.seed.isMultiple(of: 3) { device.replica?.pieceBytes = 2 << 10 }
    return device.replica != nil
  }

  private func begin(_ device: SimulatedDevice) throws(Violation) {
    device.outbox = []
    device.tickAt = nil
    device.views = [:]
    let isCopy = device.disk.isCopy
    try hand(.start(isCopy: isCopy), to: device, showing: false)
    for store in device.replica?.storeIdentifiers ?? [] {
      device.views[store] = device.replica?.view(of: store)
    }
    try hand(.clockStatus(isSynchronised: device.isClockSynchronised), to: device)
    for (store, policy) in device.opened.sorted(by: { $0.key < $1.key }) {
      try hand(.open(store, policy), to: device)
    }
  }

  /// Ends a device's process at once.
  func kill(_ device: SimulatedDevice) {
    guard device.isRunning else { return }
    tally.count("processes killed")
    trace.note("kill", [UInt64(device.number)], at: now)
    if !device.writing.isEmpty {
      let written = Int.random(in: 0...device.writing.count, using: &diskChance)
      if written < device.writing.count { tally.count("torn writes") }
      device.disk.crash(writing: device.writing, written: written)
    }
    device.writing = []
    device.life += 1
    device.replica = nil
    device.outbox = []
    device.hasWrites = false
    device.isDraining = false
    device.isPaused = false
    device.held = []
    device.fuse = nil
    device.adoptions = [:]
    closeAll(of: device)
    if device.join != nil { discard(device) }
  }

  /// A device is given up with its directory: what was only there is lost.
  func giveUp(_ device: SimulatedDevice) {
    putAtRisk(device)
    kill(device)
    device.isGone = true
  }

  /// What only a device had may be lost from here on.
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

  /// Hands an input to the core, shows what changed, and sees to it that the rest is done.
  @discardableResult
  func hand(
    _ input: Input, to device: SimulatedDevice, showing: Bool = true
  ) throws(Violation) -> [Effect] {
    guard device.isRunning, !device.hasFailed else { return [] }
    trace.note(input.name, [UInt64(device.number)], at: now)
    let instant = device.clock.instant(at: now)
    let clocks = draftClocks(of: device, before: input)
    let effects = device.replica?.handle(input, at: instant) ?? []
    if !clocks.isEmpty { try checkRestamping(of: device, from: clocks) }
    tally.count("steps")
    for effect in effects {
      switch effect {
      case .view(let change): if showing { try show(change, on: device, after: input) }
      case .report(let report): tally.count(report.name)
      case .wake(let reading): wake(device, reading)
      case .accepted, .refused, .refusedStore, .refusedMembership: break
      default: device.outbox.append(effect)
      }
    }
    // A program reads what is there only once its process has started.
    if showing { try checkStep(device, input, effects) }
    try nextDrain(device)
    return effects
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

  private func wake(_ device: SimulatedDevice, _ reading: UInt64) {
    device.tickAt = reading
    let wait = device.clock.wait(untilMonotonic: reading, at: now)
    queue.add(.tick(device.number, life: device.life, atMonotonic: reading), at: now + wait)
  }

  func tick(_ device: SimulatedDevice, _ reading: UInt64) throws(Violation) {
    guard device.tickAt == reading else { return }
    let remaining = device.clock.wait(untilMonotonic: reading, at: now)
    if remaining > 1_000 { return wake(device, reading) }
    device.tickAt = nil
    try hand(.tick, to: device)
  }

  // MARK: Commits

  func nextDrain(_ device: SimulatedDevice) throws(Violation) {
    guard !device.isDraining, !device.hasFailed, let replica = device.replica else { return }
    guard device.hasWrites || !device.outbox.isEmpty || replica.needsFlush else { return }
    device.isDraining = true
    let delay = UInt64.random(in: 0...300, using: &diskChance)
    queue.add(.drain(device.number, life: device.life), at: now + delay)
  }

  /// Takes everything that waits: does what stands before its first commit, and begins that.
  func drain(_ device: SimulatedDevice) throws(Violation) {
    // The replica that asked for it may be gone, and its disk still refuse.
    guard !device.hasFailed else {
      device.isDraining = false
      return
    }
    if device.hasWrites || device.replica?.needsFlush == true {
      device.hasWrites = false
      try hand(.flush, to: device)
    }
    let round = (try? device.outbox.filled(from: device.disk)) ?? device.outbox
    device.outbox = []
    let first = round.firstIndex { if case .persist = $0 { true } else { false } }
    let life = device.life
    try act(on: round[..<(first ?? round.endIndex)], device)
    guard device.life == life else { return }
    guard let first else {
      device.isDraining = false
      return try nextDrain(device)
    }
    var mutations: [Mutation] = []
    for case .persist(let some) in round[first...] { mutations += some }
    device.writing = mutations
    let slow = Int.random(in: 0..<100, using: &diskChance) == 0 ? UInt64(40) : 1
    let time = UInt64.random(in: 50...max(51, setup.commitMicroseconds), using: &diskChance) * slow
    queue.add(
      .committed(device.number, life: life, Round(mutations: mutations, effects: round[first...])),
      at: now + time)
  }

  func commit(_ round: Round, on device: SimulatedDevice) throws(Violation) {
    if burn(device) { return }
    do throws(StorageError) {
      try device.disk.commit(round.mutations)
    } catch {
      return try fail(device)
    }
    device.writing = []
    trace.note("commit", [UInt64(device.number), UInt64(round.mutations.count)], at: now)
    try checkClock(round.mutations, on: device)
    let life = device.life
    try act(on: round.effects, device)
    guard device.life == life else { return }
    device.isDraining = false
    try nextDrain(device)
  }

  /// Does, in order, what needs no commit any more.
  private func act(on effects: ArraySlice<Effect>, _ device: SimulatedDevice) throws(Violation) {
    let life = device.life
    for effect in effects {
      if case .persist = effect { continue }
      if burn(device) { return }
      switch effect {
      case .send(let session, let bytes): try send(bytes, on: session, from: device)
      case .sendStored(let session, let batch):
        var messages: [[UInt8]] = []
        let missing = try? batch.forEachMessage(from: device.disk) { messages.append($0) }
        if missing ?? 0 > 0 { throw Violation(.convergence, "a batch lacks what its sender keeps") }
        for message in messages { try send(message, on: session, from: device) }
      case .awaitRoom(let session): awaitRoom(on: session, of: device)
      case .close(let session, let reason): close(session, of: device, because: reason)
      case .promote(let session): promote(session, of: device)
      case .leftBehind(let behind): device.overlay?.setLeftBehind(behind)
      case .pulledAll(let session): try finishJoin(of: device, on: session)
      case .durable(let write):
        noteAdopted(write, on: device)
        try checkDurable(write, on: device)
        history.makeDurable(write)
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
    kill(device)
    queue.add(.start(device.number, life: device.life), at: now + fuse.downMicroseconds)
    return true
  }

  // MARK: Disks that refuse

  /// A commit failed: nothing that waited has happened. The device goes back to what its disk holds.
  private func fail(_ device: SimulatedDevice) throws(Violation) {
    tally.count("commits that failed")
    device.outbox = []
    device.hasWrites = false
    device.isDraining = false
    device.writing = []
    closeAll(of: device)
    if device.join != nil { return kill(device) }
    try reload(device)
  }

  func retry(_ device: SimulatedDevice) throws(Violation) {
    if device.hasFailed { try reload(device) }
  }

  private func reload(_ device: SimulatedDevice) throws(Violation) {
    device.hasFailed = false
    guard load(device) else { return giveUp(device) }
    // The program is told where what it saw was not durable, and is undone.
    try begin(device)
    do throws(StorageError) {
      try device.disk.commit([.setClock(device.disk.durable.clock)])
    } catch {
      device.hasFailed = true
      device.failedAttempts += 1
      let wait: UInt64 = min(30_000, 250 << UInt64(min(device.failedAttempts, 10)))
      queue.add(.retry(device.number, life: device.life), at: now + wait * 1_000)
      return
    }
    device.failedAttempts = 0
    try nextDrain(device)
  }
}

extension Input {
  /// For the trace.
  var name: String {
    switch self {
    case .start: "in.start"
    case .clockStatus: "in.clockStatus"
    case .acceptTime: "in.acceptTime"
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
    case .connected: "in.connected"
    case .received: "in.received"
    case .writable: "in.writable"
    case .room: "in.room"
    case .disconnected: "in.disconnected"
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
    case .clockSetBack: "clocks set back"
    case .newGeneration: "generations of clocks"
    case .noGenerationLeft: "clocks without a generation left"
    case .notStored: "batches that storage lacked a part of"
    case .publishedAhead: "change sets from the future"
    case .misdirected: "change sets for another store"
    case .authorOverLimit: "authors over their limit"
    case .revoked: "revocations learnt"
    case .damaged: "damage found"
    case .regained: "damage mended"
    case .lossAccepted: "loss accepted"
    }
  }
}
