internal import KithCore
internal import KithCrypto

extension Simulation {
  func perform(_ kind: Action.Kind) throws(Violation) {
    switch kind {
    case .write(let device, let store, let writes):
      if let device = acting(device) { try write(writes, on: device, in: name(store)) }
    case .takeRefusals(let device, let store):
      if let device = acting(device) { try takeRefusals(on: device, of: name(store)) }
    case .crash(let device, let effects, let down):
      if let device = acting(device) { device.fuse = (effects, down) }
    case .pause(let device, let microseconds):
      guard let device = acting(device) else { return }
      tally.count("processes stopped for a while")
      device.isPaused = true
      queue.add(.resume(device.number, life: device.life), at: now + microseconds)
    case .backUp(let device):
      let device = devices[device % devices.count]
      device.backups.append(device.disk.copy(isNoticed: true))
    case .restore(let device, let isNoticed): restore(device, isNoticed: isNoticed)
    case .clone(let device): try clone(device)
    case .join(let inviter): if let inviter = acting(inviter) { try join(by: inviter) }
    case .partition(let side, let isOneWay): part(side, isOneWay: isOneWay)
    case .heal(let within):
      for pair in blocked.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
        let moment = UInt64.random(in: 0...max(1, within), using: &nemesisChance)
        queue.add(.rejoin(pair[0], pair[1]), at: now + moment)
      }
    case .cut(let device):
      tally.count("connections cut")
      closeAll(of: devices[device % devices.count])
    case .slow(let device, let bytesPerSecond):
      devices[device % devices.count].bytesPerSecond = max(100, bytesPerSecond)
    case .stepClock(let device, let milliseconds):
      tally.count("clock steps")
      devices[device % devices.count].clock.step(byMilliseconds: milliseconds)
    case .drift(let device, let partsPerMillion):
      devices[device % devices.count].clock.drift(partsPerMillion: partsPerMillion, at: now)
    case .synchronise(let device, let isSynchronised):
      let device = devices[device % devices.count]
      device.isClockSynchronised = isSynchronised
      if !device.isPaused { try hand(.clockStatus(isSynchronised: isSynchronised), to: device) }
    case .fillDisk(let device, let isFull):
      if isFull { tally.count("disks filled") }
      devices[device % devices.count].disk.setFull(isFull)
    case .flipBit(let device): flipBit(device)
    case .forge(let device, let peer, let store, let forgery):
      if let device = acting(device) {
        try forge(forgery, by: device, to: devices[peer % devices.count], in: name(store))
      }
    case .revoke(let device, let revoker):
      if let revoker = acting(revoker) {
        try revoke(devices[device % devices.count], by: revoker)
      }
    case .changePolicy(let device, let store, let isOther):
      guard let device = acting(device) else { return }
      try open(name(store), under: policy(isOther: isOther), on: device)
    case .goOff(let device, let microseconds):
      if let device = acting(device) { try goOff(device, for: microseconds) }
    case .ask(let device): if let device = acting(device) { try ask(device) }
    case .spoil(let carrier, let spoiling): spoil(carrier, spoiling)
    case .lie(let device, let lie):
      if setup.carriers != nil { devices[device % devices.count].lie = lie }
    case .steal(let device, let carrier, let theft):
      if !carriers.isEmpty {
        steal(theft, by: devices[device % devices.count], on: carrier % carriers.count)
      }
    }
  }

  private func name(_ store: Int) -> StoreIdentifier { stores[store % stores.count] }

  // MARK: Programs

  func open(
    _ store: StoreIdentifier, under policy: Policy, on device: SimulatedDevice
  ) throws(Violation) {
    device.opened[store] = policy
    if device.views[store] == nil { device.views[store] = device.replica?.view(of: store) }
    try hand(.open(store, policy), to: device)
  }

  private func write(
    _ writes: [Action.Write], on device: SimulatedDevice, in store: StoreIdentifier
  ) throws(Violation) {
    if device.opened[store] == nil { try open(store, under: policy(), on: device) }
    let id = WriteID(rawValue: nextWrite)
    nextWrite += 1
    var operations: [KithCore.Operation] = []
    for (index, write) in writes.enumerated() {
      let value = write.size.flatMap { size in
        // Each value is unique, and contains the text that must not be seen on the wire.
        try? EncodedValue(
          .string("\(Self.secret)\(id.rawValue).\(index) " + String(repeating: "v", count: size)))
      }
      operations.append(KithCore.Operation(key: "\(Self.secret)key\(write.key)", value: value))
    }
    try hand(write: id, operations, to: device, in: store)
  }

  /// In every key and value, and never on the wire.
  static let secret = "s3cret"

  private func hand(
    write id: WriteID, _ operations: [KithCore.Operation], to device: SimulatedDevice,
    in store: StoreIdentifier
  ) throws(Violation) {
    guard let before = device.replica?.inspect(store) else { return }
    let shown = device.views[store] ?? [:]
    let coalesces = id.rawValue.isMultiple(of: 4)
    let effects = try hand(.write(id, store, operations), to: device, coalesces: coalesces)
    let isAccepted = effects.contains { if case .accepted(id) = $0 { true } else { false } }
    guard isAccepted else {
      tally.count("writes refused")
      guard device.views[store] ?? [:] == shown else {
        throw Violation(.quota, "a write that \(device.name) refused changed what it shows")
      }
      return
    }
    tally.count("writes")
    expect(id, on: device)
    let known = Set(before.drafts.map(\.clock))
    guard let after = device.replica?.inspect(store) else { return }
    let draft = after.drafts.first { !known.contains($0.clock) }
    if let draft,
      let loss = history.replaceDrafts(
        by: id, draft, on: device.number, in: store, from: before, to: after)
    {
      throw Violation(.nothingLost, loss)
    }
    history.accept(
      id,
      History.Write(
        device: device.number, author: device.keys.id, store: store, clock: draft?.clock,
        operations: draft?.operations ?? []))
    try checkAccepted(operations, draft, over: before, on: device, in: store)
    if id.rawValue % 8 == 4 { flush(device) }
    try nextDrain(device)
  }

  /// A program waits until its writes are durable.
  private func flush(_ device: SimulatedDevice) {
    let barrier = WriteID(rawValue: nextWrite)
    nextWrite += 1
    if case .queued = device.shell?.queueBarrier(barrier) {
      device.awaited.insert(barrier.rawValue)
    }
  }

  func takeRefusals(
    on device: SimulatedDevice, of store: StoreIdentifier
  ) throws(Violation) {
    let refusals = device.replica?.refusals(of: store) ?? []
    guard let last = refusals.last else { return }
    device.seenRefusals[store, default: []] += refusals
    tally.count("refusals told", refusals.count)
    try hand(.takeRefusals(store, through: last.number), to: device)
  }

  // MARK: Directories

  private func restore(_ number: Int, isNoticed: Bool) {
    let device = devices[number % devices.count]
    guard let copy = device.backups.last, !device.isGone else { return }
    tally.count(isNoticed ? "old copies restored" : "old copies restored unnoticed")
    putAtRisk(device)
    kill(device)
    device.life += 1
    device.disk = copy.copy(isNoticed: isNoticed)
    device.processesSinceRestore = []
    if !isNoticed { device.wasRestoredUnnoticed = true }
    queue.add(.start(device.number, life: device.life), at: now + 100_000)
  }

  private func clone(_ number: Int) throws(Violation) {
    let device = devices[number % devices.count]
    // At most as many clones as a device may have incarnations.
    guard !device.isGone, device.original == nil,
      devices.count(where: { $0.original == device.number }) < 3
    else { return }
    tally.count("directories cloned")
    let copy = add(
      device.keys, device.disk.copy(isNoticed: Bool.random(using: &nemesisChance)),
      opened: device.opened.keys.sorted(), original: device.number)
    copy.opened = device.opened
    assignCarriers(to: copy, like: device)
    copy.clock = device.clock
    copy.boot = device.boot
    copy.wasRestoredUnnoticed = true
    device.wasRestoredUnnoticed = true
    copy.targets = targets(of: copy.number)
    try start(copy)
    beginDialling(copy)
  }

  private func flipBit(_ number: Int) {
    let device = devices[number % devices.count]
    guard !device.backups.isEmpty, !device.isGone else { return }
    tally.count("bits flipped")
    device.disk.flipBit()
    kill(device)
    queue.add(.start(device.number, life: device.life), at: now + 100_000)
  }

  // MARK: Partitions

  private func part(_ side: UInt64, isOneWay: Bool) {
    tally.count(isOneWay ? "one-way partitions" : "partitions")
    func isInside(_ number: DeviceNumber) -> Bool { side >> UInt64(number % 64) & 1 == 1 }
    for from in devices.indices {
      for to in devices.indices where from != to && isInside(from) && !isInside(to) {
        blocked.insert([from, to])
        if !isOneWay { blocked.insert([to, from]) }
      }
    }
  }
}
