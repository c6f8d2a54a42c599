extension ScheduleMaker {
  private static let minute: UInt64 = 60_000_000

  /// A quarter of the runs whose devices are all connected get carriers, or all if `bounds` names
  /// them. Separate chances keep the rest of a seed's schedule, in a longer time.
  static func addCarriers(to schedule: inout Schedule, _ bounds: Bounds) {
    var maker = ScheduleMaker(seed: schedule.seed ^ 0xCA22_1E25_CA22_1E25)
    let isWanted = maker.chance(1, in: 4)
    guard bounds.faults?.contains(.carriers) ?? isWanted,
      schedule.setup.degree >= schedule.setup.devices
    else { return }
    let carriers = maker.carriers(schedule.setup)
    schedule.setup.carriers = carriers
    schedule.setup.faults.append(.carriers)
    schedule.phases.removeLast(max(0, schedule.phases.count - 2))
    for number in schedule.phases.indices {
      maker.stretch(&schedule.phases[number], schedule.setup, carriers)
    }
  }

  private mutating func carriers(_ setup: Schedule.Setup) -> Schedule.Carriers {
    let count = chance(2, in: 3) ? 1 : number(2...3)
    let all = UInt64(1) << UInt64(count) - 1
    let isApart = chance(4, in: 5)
    let isFaulty = chance(7, in: 8)
    return Schedule.Carriers(
      count: count,
      attached: (0..<setup.devices).map { _ in
        count == 1 ? all : UInt64(number(1...Int(all)))
      },
      networks: (0..<setup.devices).map { isApart ? $0 : number(0...$0 / 2) },
      shortestMilliseconds: chance(1, in: 2) ? 5_000 : 20_000,
      levelBytes: chance(1, in: 4) ? nil : 128 << number(0...4),
      faults: CarrierFault.allCases.filter { _ in isFaulty && chance(2, in: 5) },
      faultChance: number(5...120))
  }

  private mutating func stretch(
    _ phase: inout Schedule.Phase, _ setup: Schedule.Setup, _ carriers: Schedule.Carriers
  ) {
    let minutes = chance(1, in: 8) ? number(60...150) : number(4...40)
    let length = UInt64(minutes) * Self.minute
    let factor = max(1, length / max(1, phase.microseconds))
    for index in phase.actions.indices { phase.actions[index].at *= factor }
    phase.microseconds *= factor
    let end = phase.microseconds
    var added: [Action] = []
    if chance(2, in: 3) {
      // Devices are on for a moment, and then off.
      for _ in 0..<number(1...4 * setup.devices) {
        added.append(
          Action(
            at: moment(end),
            .goOff(
              device: device(setup), microseconds: UInt64(number(1...40)) * Self.minute)))
      }
    }
    for _ in 0..<number(0...4) {
      added.append(Action(at: moment(end), .ask(device: device(setup))))
    }
    for fault in carriers.faults { add(fault, during: end, setup, carriers, to: &added) }
    let sorted = (phase.actions + added).enumerated().sorted { left, right in
      left.element.at != right.element.at
        ? left.element.at < right.element.at : left.offset < right.offset
    }
    phase.actions = sorted.map(\.element)
  }

  private mutating func add(
    _ fault: CarrierFault, during length: UInt64, _ setup: Schedule.Setup,
    _ carriers: Schedule.Carriers, to actions: inout [Action]
  ) {
    func add(_ at: UInt64, _ kind: Action.Kind) { actions.append(Action(at: at, kind)) }
    let carrier = number(0...carriers.count - 1)
    switch fault {
    case .lag, .partialListing, .get, .put, .delete, .slow: break
    case .loss:
      for _ in 0..<number(1...3) {
        let spoiling = [Spoiling.lose, .lose, .damage, .damage, .wipe][number(0...4)]
        add(moment(length), .spoil(carrier: number(0...carriers.count - 1), spoiling))
      }
    case .setBack:
      add(moment(length / 2), .spoil(carrier: carrier, .keepCopy))
      add(length / 2 + moment(length / 2), .spoil(carrier: carrier, .setBack))
    case .junk:
      for _ in 0..<number(1...4) { add(moment(length), .spoil(carrier: carrier, .junk)) }
    case .liar:
      let device = self.device(setup)
      for _ in 0..<number(1...5) {
        add(moment(length), .lie(device: device, Lie.allCases[number(0...Lie.allCases.count - 1)]))
      }
    case .thief:
      let device = self.device(setup)
      if setup.devices > 2, chance(2, in: 3) {
        add(moment(length / 2), .revoke(device: device, by: self.device(setup)))
      }
      for _ in 0..<number(1...6) {
        add(
          moment(length),
          .steal(
            device: device, carrier: carrier,
            Theft.allCases[number(0...Theft.allCases.count - 1)]))
      }
    }
  }
}
