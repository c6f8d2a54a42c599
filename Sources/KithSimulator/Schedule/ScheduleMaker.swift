internal import KithCrypto

/// Makes schedules from seeds: the nemesis.
package struct ScheduleMaker {
  private var random: SeededEntropy
  private let seed: UInt64

  package struct Bounds: Codable, Hashable, Sendable {
    package var devices: ClosedRange<Int>
    /// Nil: any.
    package var faults: [Fault]?

    package init(devices: ClosedRange<Int> = 2...64, faults: [Fault]? = nil) {
      self.devices = devices
      self.faults = faults
    }
  }

  init(seed: UInt64) {
    self.seed = seed
    random = SeededEntropy(seed: seed ^ 0x5EED_0F5C_4ED0_1E00)
  }

  package static func schedule(seed: UInt64, within bounds: Bounds = Bounds()) -> Schedule {
    var maker = ScheduleMaker(seed: seed)
    let setup = maker.setup(bounds)
    let phases = (0..<[1, 1, 1, 2, 2, 3][maker.number(0...5)]).map { _ in maker.phase(setup) }
    var schedule = Schedule(seed: seed, setup: setup, phases: phases)
    addRevocations(to: &schedule, bounds)
    addCarriers(to: &schedule, bounds)
    limitRemovals(in: &schedule)
    return schedule
  }

  /// In half of the runs stores keep only a few removals, and programs remove more. Separate chances
  /// keep the rest of a seed's schedule.
  private static func limitRemovals(in schedule: inout Schedule) {
    var maker = ScheduleMaker(seed: schedule.seed ^ 0x4E40_7E1A_4E40_7E1A)
    guard maker.chance(1, in: 2) else { return }
    schedule.setup.removalLimit = maker.number(1...4)
    for phase in schedule.phases.indices {
      for index in schedule.phases[phase].actions.indices {
        guard
          case .write(let device, let store, var writes) = schedule.phases[phase].actions[index]
            .kind
        else { continue }
        for write in writes.indices where maker.chance(1, in: 4) { writes[write].size = nil }
        schedule.phases[phase].actions[index].kind = .write(
          device: device, store: store, writes)
      }
    }
  }

  /// A third of the runs with three devices or more revoke one. Separate chances keep the rest of a
  /// seed's schedule.
  private static func addRevocations(to schedule: inout Schedule, _ bounds: Bounds) {
    var maker = ScheduleMaker(seed: schedule.seed ^ 0x0FF0_0FF0_0FF0_0FF0)
    guard bounds.faults?.contains(.revocation) ?? true, schedule.setup.devices > 2,
      maker.chance(1, in: 3)
    else { return }
    schedule.setup.faults.append(.revocation)
    let phase = maker.number(0...schedule.phases.count - 1)
    let (first, second) = (maker.device(schedule.setup), maker.device(schedule.setup))
    let at = maker.moment(schedule.phases[phase].microseconds)
    var actions = [Action(at: at, .revoke(device: first, by: second))]
    if maker.chance(1, in: 3) {
      // At once: each other, or both a third.
      let isMutual = maker.chance(1, in: 2)
      actions.append(
        Action(
          at: at,
          .revoke(
            device: isMutual ? second : first,
            by: isMutual ? first : maker.device(schedule.setup))))
    }
    let all = schedule.phases[phase].actions
    let later = all.firstIndex { $0.at > at } ?? all.endIndex
    schedule.phases[phase].actions.insert(contentsOf: actions, at: later)
  }

  // MARK: Setup

  private mutating func setup(_ bounds: Bounds) -> Schedule.Setup {
    // Most bugs need few devices, and those runs are cheap.
    let sizes = [2...2, 2...3, 3...3, 2...4, 3...4, 2...4, 3...5, 3...5, 4...6, 5...9]
    var devices = number(sizes[number(0...sizes.count - 1)])
    if chance(1, in: 50) { devices = number(10...24) }
    if chance(1, in: 250) { devices = number(25...64) }
    if devices < bounds.devices.lowerBound { devices = number(bounds.devices) }
    devices = min(devices, bounds.devices.upperBound)
    let isTight = chance(3, in: 5)
    let keys = isTight ? number(4...12) : 1_024
    return Schedule.Setup(
      devices: devices, stores: chance(1, in: 2) ? 1 : number(2...4),
      // Many devices: half of the runs use the production overlay, the others a fixed random one.
      degree: devices <= 8 ? devices : max(0, number(-1...6)) / 3 * 3,
      totalBytes: isTight ? number(300...1_200) : 1 << 20, keys: keys,
      valueBytes: isTight ? number(150...500) : 1 << 20,
      keySpace: isTight ? keys + number(1...5) : number(4...24),
      faults: faults(bounds.faults ?? Fault.allCases),
      latencyMicroseconds: UInt64(number(50...20_000)),
      faultChance: number(2...60),
      commitMicroseconds: UInt64(number(100...20_000)))
  }

  /// Each is on in half of the runs; one run in sixteen has none.
  private mutating func faults(_ all: [Fault]) -> [Fault] {
    if chance(1, in: 16) { return [] }
    return all.filter { $0 != .revocation && $0 != .carriers && chance(1, in: 2) }
  }

  // MARK: Phases

  private mutating func phase(_ setup: Schedule.Setup) -> Schedule.Phase {
    let seconds = chance(1, in: 16) ? number(30...300) : number(1...20)
    let length = UInt64(seconds) * 1_000_000
    let faults = Set(setup.faults)
    var actions: [Action] = []
    let writes = number(4...(chance(1, in: 8) ? 160 : 50))
    for _ in 0..<writes { actions.append(Action(at: moment(length), write(setup))) }
    for _ in 0..<number(0...4) {
      actions.append(
        Action(at: moment(length), .takeRefusals(device: device(setup), store: store(setup))))
    }
    for fault in Fault.allCases where faults.contains(fault) {
      add(fault, during: length, setup, to: &actions)
    }
    // Equal times keep the order of making.
    let sorted = actions.enumerated().sorted { left, right in
      left.element.at != right.element.at
        ? left.element.at < right.element.at : left.offset < right.offset
    }
    return Schedule.Phase(microseconds: length, actions: sorted.map(\.element))
  }

  private mutating func write(_ setup: Schedule.Setup) -> Action.Kind {
    let count = chance(2, in: 3) ? 1 : number(2...4)
    var writes: [Action.Write] = []
    for _ in 0..<count {
      let size = chance(1, in: 6) ? nil : number(0...min(160, setup.valueBytes / 2))
      writes.append(Action.Write(key: number(0...setup.keySpace - 1), size: size))
    }
    return .write(device: device(setup), store: store(setup), writes)
  }

  private mutating func add(
    _ fault: Fault, during length: UInt64, _ setup: Schedule.Setup, to actions: inout [Action]
  ) {
    func add(_ at: UInt64, _ kind: Action.Kind) { actions.append(Action(at: at, kind)) }
    let device = self.device(setup)
    switch fault {
    case .loss, .silentLoss, .duplication, .reordering, .delay, .revocation, .carriers: break
    case .partition, .oneWayPartition:
      for _ in 0..<number(1...3) {
        let start = moment(length)
        add(start, .partition(side: random.next(), isOneWay: fault == .oneWayPartition))
        if chance(2, in: 3) {
          add(start + moment(length), .heal(withinMicroseconds: moment(length / 4)))
        }
      }
    case .cut:
      for _ in 0..<number(1...8) { add(moment(length), .cut(device: self.device(setup))) }
    case .crash:
      for _ in 0..<number(1...6) {
        add(
          moment(length),
          .crash(
            device: self.device(setup), afterEffects: number(0...12),
            downMicroseconds: UInt64(number(10_000...8_000_000))))
      }
    case .pause:
      for _ in 0..<number(1...3) {
        add(
          moment(length),
          .pause(
            device: self.device(setup), microseconds: UInt64(number(100_000...20_000_000))))
      }
    case .diskFull:
      let start = moment(length)
      add(start, .fillDisk(device: device, true))
      if chance(2, in: 3) { add(start + moment(length), .fillDisk(device: device, false)) }
    case .bitFlip:
      add(moment(length / 2), .backUp(device: device))
      add(length / 2 + moment(length / 2), .flipBit(device: device))
    case .restore:
      add(moment(length / 2), .backUp(device: device))
      add(
        length / 2 + moment(length / 2),
        .restore(device: device, isNoticed: chance(2, in: 3)))
    case .clone: add(moment(length), .clone(device: device))
    case .clockStep:
      for _ in 0..<number(1...3) {
        add(
          moment(length),
          .stepClock(device: self.device(setup), milliseconds: Int64(number(-25_000...25_000))))
      }
    case .clockDrift:
      add(moment(length), .drift(device: device, partsPerMillion: number(-20_000...20_000)))
    case .farClock:
      // The first device's clock is synchronised, so that others can follow it.
      add(0, .synchronise(device: 0, true))
      for _ in 0..<number(1...3) {
        let device = max(1, self.device(setup))
        let unit = [60_000, 3_600_000, 86_400_000, 31_557_600_000][number(0...3)]
        let step = Int64(number(1...30) * unit) * (chance(2, in: 3) ? 1 : -1)
        let start = moment(length)
        add(start, .stepClock(device: device, milliseconds: step))
        if chance(1, in: 3) { add(moment(length), .synchronise(device: device, true)) }
        if chance(1, in: 3) { add(moment(length), .synchronise(device: device, false)) }
        guard chance(1, in: 3) else { continue }
        add(
          start + moment(length - start), .stepClock(device: device, milliseconds: -step))
      }
    case .slowPeer:
      add(moment(length), .slow(device: device, bytesPerSecond: number(500...50_000)))
    case .traitor:
      for _ in 0..<number(2...12) {
        add(
          moment(length),
          .forge(
            device: device, to: self.device(setup), store: store(setup),
            Forgery.allCases[number(0...Forgery.allCases.count - 1)]))
      }
    case .join: for _ in 0..<number(1...2) { add(moment(length), .join(by: self.device(setup))) }
    case .policies:
      add(moment(length / 2), .changePolicy(device: device, store: store(setup), isOther: true))
      if chance(1, in: 2) {
        add(
          length / 2 + moment(length / 2),
          .changePolicy(device: device, store: store(setup), isOther: false))
      }
    }
  }

  // MARK: Chances

  mutating func number(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &random)
  }

  mutating func chance(_ part: Int, in whole: Int) -> Bool {
    Int.random(in: 0..<whole, using: &random) < part
  }

  mutating func moment(_ length: UInt64) -> UInt64 {
    UInt64.random(in: 0...max(1, length), using: &random)
  }

  mutating func device(_ setup: Schedule.Setup) -> Int { number(0...setup.devices - 1) }
  private mutating func store(_ setup: Schedule.Setup) -> Int { number(0...setup.stores - 1) }
}
