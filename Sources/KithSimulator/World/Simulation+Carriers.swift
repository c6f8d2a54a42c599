internal import KithCore
internal import KithCrypto

/// Carriers, whose operations take virtual time.
extension Simulation {
  // MARK: Devices

  func assignCarriers(to device: SimulatedDevice, number: Int) {
    guard let all = setup.carriers, !all.attached.isEmpty, !all.networks.isEmpty else { return }
    device.network = all.networks[number % all.networks.count]
    let bits = all.attached[number % all.attached.count]
    device.carriers = carriers.indices.filter { bits >> UInt64($0) & 1 == 1 }
  }

  func assignCarriers(to device: SimulatedDevice, like other: SimulatedDevice) {
    device.network = other.network
    device.carriers = other.carriers
  }

  func attachCarriers(of device: SimulatedDevice) throws(Violation) {
    guard let shortest = setup.carriers?.shortestMilliseconds else { return }
    for number in device.carriers {
      try hand(
        .carrier(carriers[number].id, .attached(shortestMilliseconds: shortest)), to: device)
    }
  }

  func goOff(_ device: SimulatedDevice, for microseconds: UInt64) throws(Violation) {
    guard device.join == nil, device.goesOffFor == nil else { return }
    tally.count("devices switched off")
    device.goesOffFor = microseconds
    for number in device.carriers {
      try hand(.carrier(carriers[number].id, .stopping), to: device)
    }
    // Whether its carriers answer or not.
    queue.add(.turnOff(device.number, life: device.life), at: now + 60_000_000)
  }

  func turnOff(_ device: SimulatedDevice) {
    guard let time = device.goesOffFor else { return }
    kill(device)
    queue.add(.start(device.number, life: device.life), at: now + time)
  }

  func ask(_ device: SimulatedDevice) throws(Violation) {
    for number in device.carriers { try hand(.carrier(carriers[number].id, .asked), to: device) }
  }

  // MARK: Operations

  private func strikes(_ fault: CarrierFault) -> Bool {
    guard !isHealing, let setup = setup.carriers, setup.faults.contains(fault) else { return false }
    return Int.random(in: 0..<1_024, using: &carrierChance) < setup.faultChance
  }

  private func carrierTime() -> UInt64 {
    let time = UInt64.random(in: 20_000...800_000, using: &carrierChance)
    guard strikes(.slow) else { return time }
    return time + UInt64.random(in: 1_000_000...180_000_000, using: &carrierChance)
  }

  func begin(
    _ order: CarrierOrder, of device: SimulatedDevice, on id: CarrierID
  ) throws(Violation) {
    guard let carrier = carriers.firstIndex(where: { $0.id == id }) else { return }
    trace.note(
      "carrier", [UInt64(device.number), UInt64(carrier)], at: now, "\(order.words)")
    let number = (device.operations[carrier]?.number ?? 0) + 1
    device.operations[carrier] = (number, true)
    switch order {
    case .rest:
      device.operations[carrier] = (number, false)
      tally.count("turns")
      try checkHeld(by: device, on: carrier)
      if device.goesOffFor != nil,
        device.carriers.allSatisfy({
          device.operations[$0]?.isUnderWay == false
        })
      {
        turnOff(device)
      }
      return
    case .put(let object):
      let sealed = try? object.sealed(from: device.disk)
      guard let sealed else {
        throw Violation(.convergence, "an object lacks what \(device.name) keeps")
      }
      try checkPut(sealed, as: object.name, by: device, on: carrier)
      pending[object.name] = sealed
      if device.lie != nil { lie(like: object, by: device, on: carrier) }
    case .delete(let names):
      if let name = names.first(where: { device.replica?.isUnread($0, on: id) == true }) {
        throw Violation(
          .convergence, "\(device.name) deletes the object \(name), which it did not take in")
      }
    case .list, .get: break
    }
    queue.add(
      .carry(device.number, life: device.life, carrier, number: number, order),
      at: now + carrierTime())
  }

  /// An operation ends; its device may have stopped.
  func carry(
    _ order: CarrierOrder, _ number: Int, of device: SimulatedDevice, life: Int,
    on carrier: CarrierNumber
  ) throws(Violation) {
    let isThere = device.life == life
    if isThere, device.isPaused {
      device.held.append(.carry(device.number, life: life, carrier, number: number, order))
      return
    }
    var before: [StoreIdentifier: [ChainID: UInt64]]?
    if isThere, case .delete = order { before = coverageBeforeDeletion(by: device, on: carrier) }
    let events = events(of: order, by: isThere ? device : nil, on: carrier)
    if let before { try checkDeleted(before, by: device, on: carrier) }
    // A device that goes on without this operation gets no answer to it.
    guard isThere, device.operations[carrier]?.number == number else { return }
    switch order {
    case .get(let names) where names.count > 1 && events.allSatisfy(\.isGot):
      queue.add(
        .carry(
          device.number, life: life, carrier, number: number, .get(Array(names.dropFirst()))),
        at: now + carrierTime() / 4)
    default: break
    }
    for event in events { try hand(.carrier(carriers[carrier].id, event), to: device) }
  }

  /// Carries out an order as the storage does, and returns its answers. Of several objects to get,
  /// this gets the first.
  private func events(
    of order: CarrierOrder, by device: SimulatedDevice?, on carrier: CarrierNumber
  ) -> [CarrierEvent] {
    switch order {
    case .list: return [.listed(list(carrier))]
    case .get(let names):
      guard let name = names.first, let device else { return [] }
      return [get(name, by: device, on: carrier)]
    case .put(let object):
      let bytes = pending.removeValue(forKey: object.name) ?? []
      guard !bytes.isEmpty else { return [.failed(retryAfterMilliseconds: nil)] }
      // A device that died while it put: the object may be there.
      if device == nil, Bool.random(using: &carrierChance) { return [] }
      return [put(bytes, as: object.name, on: carrier)]
    case .delete(let names):
      for name in names where !strikes(.delete) && carriers[carrier].delete(name, at: now) {
        tally.count("objects deleted")
        // A clock that jumped made an hour of the moment since it did not open.
        if !faults.isDisjoint(with: [.clockStep, .farClock]),
          device?.replica?.couldNotOpen(name, on: carriers[carrier].id) == true
        {
          carriers[carrier].lose([name], at: now)
        }
      }
      if strikes(.delete) { return [.failed(retryAfterMilliseconds: nil)] }
      return [.deleted]
    case .rest: return []
    }
  }

  private func list(_ carrier: CarrierNumber) -> [ObjectName: Int] {
    var sizes = carriers[carrier].sizes
    if strikes(.lag) {
      let minutes = [3, 20, 50][Int.random(in: 0...2, using: &carrierChance)]
      let lag = UInt64(minutes) * 60_000_000
      sizes = carriers[carrier].sizes(at: now > lag ? now - lag : 0)
      tally.count("old listings")
    }
    if strikes(.partialListing) {
      tally.count("partial listings")
      for name in sizes.keys.sorted() where Int.random(in: 0..<10, using: &carrierChance) < 4 {
        sizes[name] = nil
      }
    }
    return sizes
  }

  private func get(
    _ name: ObjectName, by device: SimulatedDevice, on carrier: CarrierNumber
  ) -> CarrierEvent {
    guard var bytes = carriers[carrier].objects[name] else { return .got(name, nil) }
    if strikes(.get) {
      tally.count("gets that failed")
      switch Int.random(in: 0...2, using: &carrierChance) {
      case 0: return .failed(retryAfterMilliseconds: nil)
      case 1: return .got(name, nil)
      default: bytes.removeLast(Int.random(in: 1...bytes.count, using: &carrierChance))
      }
    }
    tally.count("objects got")
    guard let opener = device.replica?.objectOpener else { return .got(name, nil) }
    let opened = open(bytes, named: name, with: opener)
    for case .batch(let store, let changeSets, _) in opened.facts?.messages.map(\.facts) ?? [] {
      for changeSet in changeSets { reference.note(changeSet, in: store) }
    }
    return .got(name, opened)
  }

  /// Objects that open are the same for every reader that has their epoch.
  func open(_ bytes: [UInt8], named name: ObjectName, with opener: ObjectOpener) -> OpenedObject {
    if let last = openedObjects[name], last.bytes == bytes, opener.holds(last.epoch) {
      return last.object
    }
    let opened = opener.open(bytes, named: name)
    if let epoch = opened.facts?.epoch { openedObjects[name] = (bytes, epoch, opened) }
    return opened
  }

  private func put(
    _ bytes: [UInt8], as name: ObjectName, on carrier: CarrierNumber
  ) -> CarrierEvent {
    guard strikes(.put) else {
      carriers[carrier].put(bytes, as: name, at: now)
      tally.count("objects put")
      return .stored(name, bytes: bytes.count)
    }
    tally.count("puts that failed")
    let cut = Array(bytes.dropLast(Int.random(in: 1...bytes.count, using: &carrierChance)))
    switch Int.random(in: 0...3, using: &carrierChance) {
    case 0: break
    case 1: carriers[carrier].put(cut, as: name, at: now)
    case 2: carriers[carrier].put(bytes, as: name, at: now)
    default:
      carriers[carrier].put(cut, as: name, at: now)
      return .stored(name, bytes: bytes.count)
    }
    return .failed(
      retryAfterMilliseconds: Bool.random(using: &carrierChance)
        ? UInt64.random(in: 1_000...2_000_000, using: &carrierChance) : nil)
  }
}

extension CarrierEvent {
  fileprivate var isGot: Bool { if case .got = self { true } else { false } }
}

extension CarrierOrder {
  /// For the trace.
  fileprivate var words: String {
    switch self {
    case .list: "list"
    case .get(let names): "get \(names.map { $0.description.prefix(4) })"
    case .put(let object): "put \(object.name.description.prefix(4))"
    case .delete(let names): "delete \(names.map { $0.description.prefix(4) })"
    case .rest: "rest"
    }
  }
}
