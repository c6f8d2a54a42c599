internal import KithCore
internal import KithCrypto

/// Measures what devices ask of a carrier on which alone they meet: the production core in virtual
/// time, from one seed, without faults. All devices are on all the time, and their clocks are right.
package struct CarrierLoad {
  package struct Setup: Codable, Hashable, Sendable {
    package var devices: Int
    package var days: Int
    /// Writes by the devices in turn, at random times.
    package var changesPerDay: Int
    /// How many keys are written.
    package var keys: Int
    package var seed: UInt64

    package init(devices: Int, days: Int, changesPerDay: Int, keys: Int = 200, seed: UInt64 = 1) {
      self.devices = devices
      self.days = days
      self.changesPerDay = changesPerDay
      self.keys = keys
      self.seed = seed
    }
  }

  /// The operations of all devices together.
  package struct Work: Codable, Hashable, Sendable {
    package var lists = 0
    package var gets = 0
    package var puts = 0
    package var deletes = 0
    package var bytesGot = 0
    package var bytesPut = 0

    package var requests: Int { lists + gets + puts + deletes }

    static func - (after: Work, before: Work) -> Work {
      Work(
        lists: after.lists - before.lists, gets: after.gets - before.gets,
        puts: after.puts - before.puts, deletes: after.deletes - before.deletes,
        bytesGot: after.bytesGot - before.bytesGot, bytesPut: after.bytesPut - before.bytesPut)
    }
  }

  package struct Result: Codable, Hashable, Sendable {
    package var setup: Setup
    /// The operations of all days.
    package var work = Work()
    /// The operations of a day without a change after them.
    package var idleDay = Work()
    /// The carrier's content at the end, and its maximum.
    package var objects = 0
    package var bytes = 0
    package var mostObjects = 0
    package var mostBytes = 0
    /// From a write until all others show it, in milliseconds: the median and the longest.
    package var medianMilliseconds = 0
    package var longestMilliseconds = 0
    /// Writes that some device never showed.
    package var missing = 0
  }

  private struct Device {
    var replica: Replica
    let disk = SimulatedDisk()
    var tickAt: UInt64?
  }

  private enum Event {
    case tick(Int, atMonotonic: UInt64)
    case write(Int)
    case answer(Int, CarrierOrder)
  }

  /// A write that not all devices show yet.
  private struct Open {
    var value: EncodedValue
    var at: UInt64
    var missing: Set<Int>
  }

  static let store = StoreIdentifier("com.example.Load") ?? { preconditionFailure() }()
  private static let carrier = CarrierID(Digest128 { $0[0] = 1 })
  private static let day: UInt64 = 24 * 3_600_000
  /// The time of each order, in milliseconds.
  private static let latency: UInt64 = 50

  private let setup: Setup
  private var chance: SeededEntropy
  private var devices: [Device] = []
  private var objects: [ObjectName: [UInt8]] = [:]
  private var work = Work()
  private var result: Result
  private var open: [Key: Open] = [:]
  private var delays: [Int] = []
  /// Milliseconds.
  private var now: UInt64 = 0
  private var queue = EventQueue<Event>()
  private var lastWrite: UInt64 = 0

  /// The same setup gives the same figures. `progress` is called after each day.
  package static func run(_ setup: Setup, _ progress: (Int) -> Void = { _ in }) -> Result {
    var load = CarrierLoad(setup)
    return load.run(progress)
  }

  private init(_ setup: Setup) {
    self.setup = setup
    result = Result(setup: setup)
    chance = SeededEntropy(seed: setup.seed ^ 0x4341_5252_0000_0001)
    let founder = Founder(devices: setup.devices, entropy: &chance)
    for member in founder.members {
      devices.append(
        Device(
          replica: Replica(
            keys: member.keys, roster: founder.roster, process: ProcessID(chance.draw()),
            entropy: SeededEntropy(seed: chance.next()))))
    }
  }

  private mutating func run(_ progress: (Int) -> Void) -> Result {
    for number in devices.indices {
      hand(.start(isCopy: false), to: number)
      hand(.clockStatus(isSynchronised: true), to: number)
      hand(.open(Self.store, .standard), to: number)
      hand(.carrier(Self.carrier, .attached(shortestMilliseconds: 5_000)), to: number)
    }
    for day in 0..<setup.days {
      for _ in 0..<setup.changesPerDay {
        let writer = Int(chance.next() % UInt64(devices.count))
        queue.add(.write(writer), at: now + chance.next() % Self.day)
      }
      pass(until: now + Self.day)
      progress(day + 1)
    }
    result.work = work
    result.objects = objects.count
    result.bytes = objects.values.reduce(0) { $0 + $1.count }
    // Exchanges that began on the last day may go on for a while.
    pass(until: now + Self.day)
    let before = work
    pass(until: now + Self.day)
    result.idleDay = work - before
    result.missing = open.count
    delays.sort()
    result.medianMilliseconds = delays.isEmpty ? 0 : delays[delays.count / 2]
    result.longestMilliseconds = delays.last ?? 0
    return result
  }

  // MARK: Time

  private mutating func pass(until end: UInt64) {
    while let next = queue.next(until: end) {
      now = next.time
      happen(next.event)
    }
    now = end
  }

  private mutating func happen(_ event: Event) {
    switch event {
    case .tick(let number, let reading):
      guard devices[number].tickAt == reading else { return }
      devices[number].tickAt = nil
      hand(.tick, to: number)
    case .write(let number): write(number)
    case .answer(let number, let order): answer(order, of: number)
    }
  }

  private var instant: Instant {
    Instant(wallMilliseconds: HostClock.origin + now, monotonicMilliseconds: now)
  }

  // MARK: Devices

  private mutating func write(_ number: Int) {
    lastWrite += 1
    let key = "key\(chance.next() % UInt64(max(1, setup.keys)))"
    let text = "value \(lastWrite) " + String(repeating: "v", count: Int(chance.next() % 200))
    guard let value = try? EncodedValue(.string(text)) else { return }
    // A later write of a key replaces the earlier one, which some device may never show.
    open[Key(key)] = Open(
      value: value, at: now, missing: Set(devices.indices).subtracting([number]))
    hand(
      .write(
        WriteID(rawValue: lastWrite), Self.store, [KithCore.Operation(key: key, value: value)]),
      to: number)
  }

  private mutating func hand(_ input: Input, to number: Int) {
    carryOut(devices[number].replica.handle(input, at: instant), of: number)
    guard devices[number].replica.needsFlush else { return }
    carryOut(devices[number].replica.handle(.flush, at: instant), of: number)
  }

  private mutating func carryOut(_ effects: [Effect], of number: Int) {
    for effect in effects {
      switch effect {
      case .persist(let mutations): try? devices[number].disk.commit(mutations)
      case .wake(let time):
        devices[number].tickAt = time
        queue.add(.tick(number, atMonotonic: time), at: max(now, time))
      case .view(let change): show(change, on: number)
      case .carrier(_, .rest): break
      case .carrier(_, let order): queue.add(.answer(number, order), at: now + Self.latency)
      default: break
      }
    }
  }

  private mutating func show(_ change: ViewChange, on number: Int) {
    for (key, value) in change.changes {
      guard open[key]?.value == value, open[key]?.missing.remove(number) != nil else { continue }
      guard let write = open[key], write.missing.isEmpty else { continue }
      delays.append(Int(now - write.at))
      open[key] = nil
    }
  }

  // MARK: The carrier

  private mutating func answer(_ order: CarrierOrder, of number: Int) {
    func tell(_ load: inout CarrierLoad, _ event: CarrierEvent) {
      load.hand(.carrier(Self.carrier, event), to: number)
    }
    switch order {
    case .list:
      work.lists += 1
      tell(&self, .listed(objects.mapValues(\.count)))
    case .get(let names):
      let opener = devices[number].replica.objectOpener
      for name in names {
        work.gets += 1
        work.bytesGot += objects[name]?.count ?? 0
        tell(&self, .got(name, objects[name].map { opener.open($0, named: name) }))
      }
    case .put(let object):
      guard let bytes = try? object.sealed(from: devices[number].disk) else {
        return tell(&self, .failed(retryAfterMilliseconds: nil))
      }
      work.puts += 1
      work.bytesPut += bytes.count
      objects[object.name] = bytes
      result.mostObjects = max(result.mostObjects, objects.count)
      result.mostBytes = max(result.mostBytes, objects.values.reduce(0) { $0 + $1.count })
      tell(&self, .stored(object.name, bytes: bytes.count))
    case .delete(let names):
      for name in names {
        work.deletes += 1
        objects[name] = nil
      }
      tell(&self, .deleted)
    case .rest: break
    }
  }
}
