internal import KithCore
internal import KithCrypto

/// One run of a schedule: devices with the production core, hosts with clocks and disks, a network,
/// programs that write, and faults. One thread, virtual time, one seed. Ends with the first broken
/// promise, or after all phases.
package final class Simulation {
  let schedule: Schedule
  let setup: Schedule.Setup
  let faults: Set<Fault>
  let account: AccountID
  let stores: [StoreIdentifier]
  /// Microseconds since the run began.
  var now: UInt64 = 0
  var queue = EventQueue<Event>()
  /// The present virtual second, and its events.
  private var second: (number: UInt64, events: Int) = (0, 0)
  var devices: [SimulatedDevice] = []
  var connections: [ConnectionNumber: Connection] = [:]
  var sessions: [DeviceNumber: [SessionID: (connection: ConnectionNumber, end: Int)]] = [:]
  /// Directions that are cut.
  var blocked: Set<[DeviceNumber]> = []
  /// Whether faults are over and convergence is awaited.
  var isHealing = false

  var networkChance: SeededEntropy
  var diskChance: SeededEntropy
  var keyChance: SeededEntropy
  var nemesisChance: SeededEntropy

  var trace: Trace
  var tally = Tally()
  var history = History()
  var reference = ReferenceMerge()
  var nextConnection = 0
  var nextSession: UInt64 = 1
  var nextWrite: UInt64 = 1
  /// The last message, decoded once: it often goes to several devices.
  var lastMessage: (bytes: [UInt8], message: InboundMessage)?
  var forger = Forger()
  /// Stores in which an author published more than others keep: devices need not agree.
  var flooded: Set<StoreIdentifier> = []
  var revoked: Set<DeviceID> = []
  var carriers: [SimulatedCarrier] = []
  var carrierChance: SeededEntropy
  /// The latest hybrid clock of a device that put something.
  var latestPutMilliseconds: UInt64 = 0
  /// Objects that are being put.
  var pending: [ObjectName: [UInt8]] = [:]
  /// Each object is decoded once.
  var openedObjects: [ObjectName: (bytes: [UInt8], epoch: EpochID, object: OpenedObject)] = [:]
  /// How far a publishing clock may be ahead, in microseconds.
  var clockExcess: UInt64 = 0

  /// Above what 64 devices cause as all connect at once.
  private static let mostEventsOfSecond = 500_000

  private init(_ schedule: Schedule, keepsTrace: Bool) throws(Violation) {
    self.schedule = schedule
    setup = schedule.setup
    faults = Set(schedule.setup.faults)
    stores = (0..<max(1, schedule.setup.stores)).compactMap {
      StoreIdentifier("com.example.Store\($0)")
    }
    let seed = schedule.seed
    networkChance = SeededEntropy(seed: seed ^ 0x4E45_5457_0000_0001)
    diskChance = SeededEntropy(seed: seed ^ 0x4449_534B_0000_0002)
    keyChance = SeededEntropy(seed: seed ^ 0x4B45_5953_0000_0003)
    nemesisChance = SeededEntropy(seed: seed ^ 0x4E45_4D45_0000_0004)
    carrierChance = SeededEntropy(seed: seed ^ 0x4341_5252_0000_0005)
    trace = Trace(keepsTrace: keepsTrace)
    let founder = Founder(devices: schedule.setup.devices, entropy: &keyChance)
    account = founder.account
    carriers = (0..<(setup.carriers?.count ?? 0)).map { SimulatedCarrier(number: $0) }
    for (number, member) in founder.members.enumerated() {
      let device = add(
        member.keys, SimulatedDisk(member.snapshot), opened: number == 0 ? stores : [])
      assignCarriers(to: device, number: number)
    }
    for device in devices {
      device.targets = targets(of: device.number)
      device.clock.step(
        byMilliseconds: Int64.random(in: -2_000...2_000, using: &nemesisChance))
      try start(device)
      beginDialling(device)
    }
  }

  /// Runs a schedule: the same schedule gives the same result. `keepsTrace` adds the events in
  /// words.
  package static func run(_ schedule: Schedule, keepsTrace: Bool = false) -> RunResult {
    var simulation: Simulation?
    var violation: Violation?
    do throws(Violation) {
      let made = try Simulation(schedule, keepsTrace: keepsTrace)
      simulation = made
      try made.runPhases()
    } catch {
      violation = error
    }
    return RunResult(
      schedule: schedule, violation: violation, microseconds: simulation?.now ?? 0,
      deviceMicroseconds: (simulation?.now ?? 0) * UInt64(simulation?.devices.count ?? 0),
      trace: simulation?.trace.digest ?? "", events: simulation?.trace.events ?? 0,
      lines: simulation?.trace.lines ?? [], tally: simulation?.tally ?? Tally())
  }

  private func runPhases() throws(Violation) {
    for phase in schedule.phases {
      let start = now
      for action in phase.actions { queue.add(.action(action.kind), at: start + action.at) }
      try pass(until: start + phase.microseconds)
      try heal()
      try demandConvergence()
      isHealing = false
      // In the next phase all clocks are synchronised, or only the first device's.
      if Bool.random(using: &nemesisChance) { try unsynchronise() }
    }
    try checkDisks()
  }

  private func unsynchronise() throws(Violation) {
    for device in devices where device.isRunning && device.number > 0 {
      device.isClockSynchronised = false
      try hand(.clockStatus(isSynchronised: false), to: device)
    }
  }

  func pass(until end: UInt64) throws(Violation) {
    while let (time, event) = queue.next(until: end) {
      if time / 1_000_000 > second.number { second = (time / 1_000_000, 0) }
      second.events += 1
      guard second.events <= Self.mostEventsOfSecond else {
        throw Violation(
          .bounds,
          "\(Self.mostEventsOfSecond) events within a second: messages are passed on without end")
      }
      now = time
      try happen(event)
    }
    now = end
  }

  private func happen(_ event: Event) throws(Violation) {
    if let (device, life) = event.process {
      guard devices[device].life == life else { return }
      if devices[device].isPaused {
        devices[device].held.append(event)
        return
      }
    }
    switch event {
    case .action(let kind): if !isHealing { try perform(kind) }
    case .input(let device, _, let input): try hand(input, to: devices[device])
    case .drain(let device, _): try drain(devices[device])
    case .written(let device, _, let round): try write(round, on: devices[device])
    case .committed(let device, _, let round): try commit(round, on: devices[device])
    case .wake(let device, _, let reading): try wake(devices[device], reading)
    case .start(let device, _): try start(devices[device])
    case .emptyLocal(let device, _, let store): try emptyLocal(store, of: devices[device])
    case .resume(let device, _): resume(devices[device])
    case .dial(let device, let other): dial(from: device, to: other)
    case .plan(let device): plan(device)
    case .established(let device, let other, let lives):
      try establish(from: device, to: other, lives)
    case .deliver(let connection, let end): try deliver(connection, end)
    case .ended(let connection, let end): try tell(ofEndOf: connection, end)
    case .giveUp(let connection): giveUp(connection)
    case .strangerTime(let connection): endStranger(connection)
    case .rejoin(let device, let other): rejoin(device, other)
    case .carry(let device, let life, let carrier, let number, let order):
      try carry(order, number, of: devices[device], life: life, on: carrier)
    case .turnOff(let device, _): turnOff(devices[device])
    }
  }

  // MARK: Devices

  @discardableResult
  func add(
    _ keys: DeviceKeys, _ disk: SimulatedDisk, opened: [StoreIdentifier],
    original: DeviceNumber? = nil
  ) -> SimulatedDevice {
    let device = SimulatedDevice(
      number: devices.count, name: "device \(devices.count)", keys: keys, disk: disk,
      original: original)
    for store in opened { device.opened[store] = policy() }
    devices.append(device)
    return device
  }

  func policy(isOther: Bool = false) -> Policy {
    Policy(
      totalBytes: setup.totalBytes + (isOther ? 64 : 0), keys: setup.keys,
      valueBytes: setup.valueBytes)
  }

  /// Returns neighbours in a ring, so that all are connected, and random others.
  func targets(of number: DeviceNumber) -> [DeviceNumber] {
    let count = devices.count
    if isOverlay { return [] }
    guard !isMesh, setup.degree < count - 1 else { return (0..<count).filter { $0 != number } }
    var targets: Set<DeviceNumber> = [(number + 1) % count]
    while targets.count < min(setup.degree, count - 1) {
      let other = Int.random(in: 0..<count, using: &nemesisChance)
      if other != number { targets.insert(other) }
    }
    return targets.sorted()
  }

  /// Whether every device dials every other.
  var isMesh: Bool { setup.degree >= setup.devices - 1 }
  /// Whether the overlay's plan draws the dialled devices, as in production.
  var isOverlay: Bool { setup.degree == 0 }

  func beginDialling(_ device: SimulatedDevice) {
    if isOverlay {
      device.overlay = OverlayPlan(seed: networkChance.next())
      queue.add(
        .plan(device.number), at: now + UInt64.random(in: 0...500_000, using: &networkChance))
    }
    for target in device.targets {
      queue.add(
        .dial(device.number, to: target),
        at: now + UInt64.random(in: 0...500_000, using: &networkChance))
    }
  }

  /// Nil if the device can do nothing now.
  func acting(_ number: Int) -> SimulatedDevice? {
    let device = devices[number % devices.count]
    return device.isRunning && !device.isPaused && !device.isFailing ? device : nil
  }
}

extension Event {
  /// A paused process handles the event later.
  fileprivate var process: (DeviceNumber, life: Int)? {
    switch self {
    case .input(let device, let life, _), .drain(let device, let life),
      .written(let device, let life, _), .committed(let device, let life, _),
      .wake(let device, let life, _),
      .emptyLocal(let device, let life, _), .turnOff(let device, let life):
      (device, life)
    default: nil
    }
  }
}
