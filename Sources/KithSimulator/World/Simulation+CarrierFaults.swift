internal import KithCore
internal import KithCrypto

/// Faults of carriers' objects, and objects of members that lie.
extension Simulation {
  func spoil(_ number: Int, _ spoiling: Spoiling) {
    guard !carriers.isEmpty else { return }
    let carrier = number % carriers.count
    let names = carriers[carrier].objects.keys.sorted()
    trace.note("spoil", [UInt64(carrier)], at: now, spoiling.rawValue)
    tally.count("carriers: \(spoiling.rawValue)")
    switch spoiling {
    case .wipe: carriers[carrier].lose(names, at: now)
    case .keepCopy: carriers[carrier].keepCopy()
    case .setBack: _ = carriers[carrier].setBack(at: now)
    case .lose:
      carriers[carrier].lose(
        names.filter { _ in Int.random(in: 0...2, using: &carrierChance) == 0 }, at: now)
    case .damage:
      for name in names where Int.random(in: 0...2, using: &carrierChance) == 0 {
        carriers[carrier].damage(
          name, at: now, cut: Int.random(in: -20...20, using: &carrierChance),
          flip: Int.random(in: 0...5_000, using: &carrierChance))
      }
    case .junk:
      let size = Int.random(in: 0...5_000, using: &carrierChance)
      carriers[carrier].put(
        (0..<size).map { _ in UInt8.random(in: 0...255, using: &carrierChance) },
        as: ObjectName(carrierChance.draw()), at: now)
    }
  }

  /// Puts an object like one that the device puts, and false.
  func lie(
    like object: OutboundObject, by device: SimulatedDevice, on carrier: CarrierNumber
  ) {
    guard !isHealing, let lie = device.lie else { return device.lie = nil }
    guard !object.isPiece else { return }
    if Int.random(in: 0...2, using: &carrierChance) == 0 { device.lie = nil }
    tally.count("lies: \(lie.rawValue)")
    device.isTraitor = true
    // The lie comes instead of the truth, or beside it.
    if Bool.random(using: &carrierChance) { pending[object.name] = [] }
    var object = object.again(entropy: &carrierChance)
    switch lie {
    case .tooMuch: object.claim(more: 1_000)
    case .unreachable: object.rise(by: 5)
    case .latest:
      object.raiseLevel()
      object.empty()
    case .incomplete: object.need(ObjectName(carrierChance.draw()))
    case .empty: object.empty()
    case .hollow:
      if Bool.random(using: &carrierChance) { object.raiseLevel() }
      // Removals are in no digest, so nobody can notice that one is missing.
      var values: Set<EntryPlace> = []
      for store in stores {
        for kept in (device.replica?.inspect(store)?.slots ?? [:]).values.joined()
        where !kept.entry.isRemoval {
          values.insert(EntryPlace(changeSet: kept.changeSet, index: kept.index))
        }
      }
      object.leaveOut { values.contains(EntryPlace(changeSet: $0, index: $1)) }
    }
    guard let sealed = try? object.sealed(from: device.disk) else { return }
    carriers[carrier].put(sealed, as: object.name, at: now)
  }

  private struct EntryPlace: Hashable {
    var changeSet: ChangeSetReference
    var index: UInt32
  }

  /// The thief has the device's keys, as far as it knew them.
  func steal(_ theft: Theft, by device: SimulatedDevice, on carrier: CarrierNumber) {
    guard let replica = device.replica, let keys = replica.carrierKeys else { return }
    tally.count("thefts: \(theft.rawValue)")
    trace.note("steal", [UInt64(device.number), UInt64(carrier)], at: now, theft.rawValue)
    device.isTraitor = true
    let names = carriers[carrier].objects.keys.sorted()
    switch theft {
    case .delete:
      carriers[carrier].lose(
        names.filter { _ in Int.random(in: 0...2, using: &carrierChance) == 0 }, at: now)
    case .garbage:
      carriers[carrier].put(
        (0..<4_096).map { _ in UInt8.random(in: 0...255, using: &carrierChance) },
        as: ObjectName(of: keys, entropy: &carrierChance), at: now)
    case .epoch:
      let object = OutboundObject.strange(
        after: replica.keyring.newestFirst.first?.generation ?? 0, in: replica.roster, keys,
        by: device.keys, entropy: &carrierChance)
      carriers[carrier].put(object.sealed, as: object.name, at: now)
    case .copy:
      guard let name = names.randomElement(using: &carrierChance),
        let bytes = carriers[carrier].objects[name]
      else { return }
      carriers[carrier].put(bytes, as: ObjectName(of: keys, entropy: &carrierChance), at: now)
    }
  }
}
