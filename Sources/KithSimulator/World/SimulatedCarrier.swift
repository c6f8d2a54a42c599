internal import KithCore
internal import KithCrypto

/// Dumb storage: objects by name. Its faults are in `Simulation+Carriers`.
struct SimulatedCarrier {
  let id: CarrierID
  private(set) var objects: [ObjectName: [UInt8]] = [:]
  /// Its listings and when each began, oldest first.
  private var past: [(time: UInt64, sizes: [ObjectName: Int])] = [(0, [:])]
  private var copy: (objects: [ObjectName: [UInt8]], damaged: Set<ObjectName>)?
  /// When the storage itself last lost, changed or brought back something.
  private(set) var spoiltAt: UInt64?
  /// Objects that changed and kept their size: no listing shows that.
  private var damaged: Set<ObjectName> = []
  private(set) var changes = 0
  /// When a device last put or deleted something.
  private(set) var usedAt: UInt64 = 0
  /// When a device last deleted something.
  private(set) var deletedAt: UInt64?
  /// Parts of stored objects, by which two that share 16 bytes are found.
  private var blocks: [ArraySlice<UInt8>: ObjectName] = [:]

  init(number: Int) {
    id = CarrierID(Digest128 { $0.storeBytes(of: UInt8(number + 1), as: UInt8.self) })
  }

  var sizes: [ObjectName: Int] { past.last?.sizes ?? [:] }
  var holdsDamaged: Bool { !damaged.isEmpty }

  /// As it was at a time.
  func sizes(at time: UInt64) -> [ObjectName: Int] {
    past.last { $0.time <= time }?.sizes ?? past.first?.sizes ?? [:]
  }

  // MARK: Use

  mutating func put(_ bytes: [UInt8], as name: ObjectName, at now: UInt64) {
    objects[name] = bytes
    usedAt = now
    note(at: now)
  }

  /// Returns whether it was there.
  mutating func delete(_ name: ObjectName, at now: UInt64) -> Bool {
    usedAt = now
    guard objects.removeValue(forKey: name) != nil else { return false }
    damaged.remove(name)
    deletedAt = now
    note(at: now)
    return true
  }

  /// Another object with 16 of the bytes.
  mutating func objectThatShares(_ bytes: [UInt8], of name: ObjectName) -> ObjectName? {
    let size = 16
    guard bytes.count >= size else { return nil }
    for start in 0...bytes.count - size {
      if let other = blocks[bytes[start..<start + size]], other != name { return other }
    }
    for start in stride(from: 0, through: bytes.count - size, by: size) {
      blocks[bytes[start..<start + size]] = name
    }
    return nil
  }

  // MARK: Faults

  /// Something vanished.
  mutating func lose(_ names: [ObjectName], at now: UInt64) {
    for name in names {
      objects[name] = nil
      damaged.remove(name)
    }
    spoil(at: now)
  }

  mutating func damage(_ name: ObjectName, at now: UInt64, cut: Int, flip: Int) {
    guard var bytes = objects[name], !bytes.isEmpty else { return }
    if cut > 0 {
      bytes.removeLast(min(cut, bytes.count))
    } else {
      bytes[flip % bytes.count] ^= 1
      damaged.insert(name)
    }
    objects[name] = bytes
    spoil(at: now)
  }

  mutating func keepCopy() { copy = (objects, damaged) }

  /// Returns whether there was a copy.
  mutating func setBack(at now: UInt64) -> Bool {
    guard let copy else { return false }
    (objects, damaged) = copy
    spoil(at: now)
    return true
  }

  private mutating func spoil(at now: UInt64) {
    spoiltAt = now
    note(at: now)
  }

  private mutating func note(at now: UInt64) {
    changes += 1
    past.append((now, objects.mapValues(\.count)))
    let old = past.lastIndex { $0.time + 3_600_000_000 < now } ?? 0
    if old > 16 { past.removeFirst(old) }
  }
}
