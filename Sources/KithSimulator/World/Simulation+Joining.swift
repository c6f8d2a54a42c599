internal import KithCore
internal import KithCrypto

/// Devices join over one connection, which may break off anywhere.
extension Simulation {
  func join(by inviter: SimulatedDevice) throws(Violation) {
    guard devices.count < 96, let replica = inviter.replica else { return }
    let keys = Founder.makeKeys(&keyChance)
    let records: [Record]
    do {
      records = try JoinRequest.accept(
        JoinRequest.make(account: account, keys: keys, name: "joined", issued: 3),
        roster: replica.roster, keyring: replica.keyring, keys: inviter.keys, entropy: &keyChance)
    } catch {
      return
    }
    tally.count("joins begun")
    var roster = replica.roster
    _ = roster.learn(all: records)
    let device = add(keys, SimulatedDisk(Founder.snapshot(roster)), opened: [])
    device.inviter = inviter.keys.id
    assignCarriers(to: device, like: inviter)
    writeLocally(on: device)
    let sessions = connect(device, with: inviter)
    device.join = SimulatedDevice.Join(inviter: inviter.number, session: sessions.joiner)
    try start(device)
    let joiner = Joiner(records: records, address: "127.0.0.1:\(5_000 + device.number)")
    let clock = replica.hybridClock
    try hand(.admit(sessions.inviter, joiner), to: inviter)
    try hand(
      .join(
        sessions.joiner,
        Inviter(device: inviter.keys.id, clock: clock, address: "127.0.0.1:\(5_000)")),
      to: device)
    if inviter.replica?.roster.isMember(device.keys.id) == true {
      throw Violation(
        .convergence, "\(inviter.name) took in \(device.name), which does not exist yet")
    }
    // One of three dies while joining, or soon after.
    if faults.contains(.crash), Int.random(in: 0..<3, using: &nemesisChance) == 0 {
      device.fuse = (Int.random(in: 0..<12, using: &nemesisChance), 500_000)
    }
  }

  private func connect(
    _ joiner: SimulatedDevice, with inviter: SimulatedDevice
  ) -> (joiner: SessionID, inviter: SessionID) {
    let number = nextConnection
    nextConnection += 1
    let (first, second) = (SessionID(rawValue: nextSession), SessionID(rawValue: nextSession + 1))
    nextSession += 2
    connections[number] = Connection(
      pipes: [
        Connection.Pipe(
          from: joiner.number, to: inviter.number, life: inviter.life, session: second),
        // The joiner's process starts in a moment.
        Connection.Pipe(
          from: inviter.number, to: joiner.number, life: joiner.life + 1, session: first),
      ], openedAt: now, promoted: [true, true])
    sessions[joiner.number, default: [:]][first] = (number, 0)
    sessions[inviter.number, default: [:]][second] = (number, 1)
    return (first, second)
  }

  /// The joiner has pulled all, and it is durable.
  func finishJoin(of device: SimulatedDevice, on session: SessionID) throws(Violation) {
    guard let join = device.join else { return }
    if devices[join.inviter].replica?.roster.isMember(device.keys.id) == true {
      throw Violation(.convergence, "\(device.name) was a member before it existed")
    }
    device.join = nil
    tally.count("devices joined")
    device.targets = Set(targets(of: device.number) + [join.inviter]).sorted()
    try adoptLocal(on: device)
    try attachCarriers(of: device)
    beginDialling(device)
    try send(JoinDone().encodedMessage(), on: session, from: device)
    // The joiner waits two seconds for the end, then continues as a member.
    guard let (number, _) = sessions[device.number]?[session] else { return }
    connections[number]?.promoted = [false, false]
    queue.add(.strangerTime(number), at: now + 2_000_000)
  }

  /// A join broke off and leaves nothing. A person may try again.
  func discard(_ device: SimulatedDevice) {
    guard let join = device.join else { return }
    tally.count("joins broken off")
    device.join = nil
    device.isGone = true
    if Bool.random(using: &nemesisChance) {
      queue.add(.action(.join(by: join.inviter)), at: now + 1_000_000)
    }
  }

  /// Whether a device's inviter was revoked before others knew the device.
  func mustJoinAgain(_ device: SimulatedDevice) -> Bool {
    guard let inviter = device.inviter, revoked.contains(inviter), device.join == nil else {
      return false
    }
    return !devices.contains { other in
      !other.isGone && other.number != device.number && other.keys.id != inviter
        && (setup.carriers == nil || !isInvited(other, by: inviter))
        && other.replica?.roster.isMember(device.keys.id) == true
    }
  }

  /// Whether a device's membership comes from another. Those that one device invited may know only
  /// each other.
  func isInvited(_ device: SimulatedDevice, by other: DeviceID) -> Bool {
    var inviter = device.inviter
    while let id = inviter, id != other {
      inviter = devices.first { $0.keys.id == id && $0.original == nil }?.inviter
    }
    return inviter == other
  }

  // MARK: Adoption

  /// Programs write while nobody is signed in.
  private func writeLocally(on device: SimulatedDevice) {
    for number in 0..<UInt64(Int.random(in: 0...3, using: &nemesisChance)) {
      guard let store = stores.randomElement(using: &nemesisChance) else { return }
      let key = "\(Self.secret)key\(Int.random(in: 0...setup.keySpace, using: &nemesisChance))"
      guard
        let value = try? EncodedValue(.string("\(Self.secret)local \(device.number).\(number)"))
      else { return }
      let clock = HybridTime(milliseconds: HostClock.origin + now / 1_000 + number)
      device.local[store, default: []].append(
        LocalWrite(clock: clock, operations: [KithCore.Operation(key: key, value: value)]))
    }
  }

  /// Adopts the local stores' writes. Completes adoptions whose local store is already empty.
  func adoptLocal(on device: SimulatedDevice) throws(Violation) {
    guard device.join == nil else { return }
    for store in device.replica?.adoptingStores ?? [] where device.local[store] == nil {
      try emptyLocal(store, of: device)
    }
    for (store, writes) in device.local.sorted(by: { $0.key < $1.key }) {
      if device.opened[store] == nil { try open(store, under: policy(), on: device) }
      let id = WriteID(rawValue: nextWrite)
      nextWrite += 1
      let effects = try hand(.adopt(id, store, writes), to: device)
      guard effects.contains(where: { if case .accepted(id) = $0 { true } else { false } }) else {
        continue
      }
      device.adoptions[id] = store
      expect(id, on: device)
      let changes = effects.contains {
        switch $0 {
        case .view: true
        case .persist(let mutations):
          mutations.contains {
            if case .put(.store(_, .refusal), _) = $0 { true } else { false }
          }
        default: false
        }
      }
      if device.adopted.contains(store) {
        tally.count("adoptions after a crash")
        guard !changes else {
          throw Violation(.nothingLost, "\(device.name) adopted writes a second time")
        }
      }
      for draft in device.replica?.inspect(store)?.drafts ?? []
      where writes.contains(where: { write in
        draft.operations.contains { $0.value != nil && write.operations.contains($0) }
      }) {
        guard draft.clock.isAdopted else {
          throw Violation(.causality, "\(device.name) stamped an adopted write as one of now")
        }
      }
    }
  }

  /// An adoption is durable: each of its writes is now shown, superseded or refused.
  func noteAdopted(_ id: WriteID, on device: SimulatedDevice) {
    guard let store = device.adoptions.removeValue(forKey: id), device.local[store] != nil else {
      return
    }
    let isFirst = device.adopted.insert(store).inserted
    let writes = device.local[store] ?? []
    var replacements: [Key: WriteID] = [:]
    // The last first: it may replace what is before it.
    for (index, write) in writes.enumerated().reversed() where isFirst {
      tally.count("writes adopted")
      let id = WriteID(rawValue: nextWrite + UInt64(index))
      var known = History.Write(
        device: device.number, author: device.keys.id, store: store,
        clock: write.clock.adoptedReading, operations: write.operations)
      known.replacements = replacements
      history.accept(id, known)
      history.makeDurable(id)
      for operation in write.operations { replacements[Key(operation.key)] = id }
    }
    if isFirst { nextWrite += UInt64(writes.count) }
    queue.add(
      .emptyLocal(device.number, life: device.life, store),
      at: now + UInt64.random(in: 0...200_000, using: &nemesisChance))
    // One process of three dies before that, and adopts the same writes again.
    if faults.contains(.crash), Int.random(in: 0..<3, using: &nemesisChance) == 0 {
      device.fuse = (Int.random(in: 0..<3, using: &nemesisChance), 500_000)
    }
  }

  /// Empties the local store, and ends the adoption in the account's.
  func emptyLocal(_ store: StoreIdentifier, of device: SimulatedDevice) throws(Violation) {
    device.local[store] = nil
    let id = WriteID(rawValue: nextWrite)
    nextWrite += 1
    let effects = try hand(.adopt(id, store, []), to: device)
    guard effects.contains(where: { if case .accepted(id) = $0 { true } else { false } }) else {
      return endAdoptionLater(of: store, on: device)
    }
    device.adoptions[id] = store
    expect(id, on: device)
  }

  /// The disk refused an adoption or its end. Only the end is tried again before the next start.
  func noteAdoptionFailed(_ id: WriteID, on device: SimulatedDevice) {
    guard let store = device.adoptions.removeValue(forKey: id), device.local[store] == nil else {
      return
    }
    endAdoptionLater(of: store, on: device)
  }

  private func endAdoptionLater(of store: StoreIdentifier, on device: SimulatedDevice) {
    queue.add(.emptyLocal(device.number, life: device.life, store), at: now + 5_000_000)
  }
}

extension HybridTime {
  /// The adopted write's stamp.
  fileprivate var adoptedReading: HybridTime { HybridTime(rawValue: rawValue & (1 << 56 - 1)) }
}
