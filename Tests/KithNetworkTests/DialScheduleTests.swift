import KithCore
import KithCrypto
import Testing

@testable import KithNetwork

struct DialScheduleTests {
  let address: PeerAddress
  let other: PeerAddress
  let key = deviceKeys(2).transportPublicKey

  init() throws {
    address = try PeerAddress("192.0.2.1")
    other = try PeerAddress("192.0.2.2")
  }

  @Test func waitsDoubleUpToTheLimitAndAreResetByALastingSession() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    var now: UInt64 = 1000
    var waits: [UInt64] = []
    for _ in 0..<10 {
      let dial = try #require(schedule.takeDue(at: now).first)
      #expect(schedule.takeDue(at: now).isEmpty)
      schedule.failed(dial, .unreachable(.nothingListens), at: now, random: 1)
      let next = try #require(schedule.nextDue())
      waits.append(next - now)
      now = next
    }
    #expect(waits == [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000])
    let dial = try #require(schedule.takeDue(at: now).first)
    let id = SessionID(rawValue: 1)
    schedule.opened(id, key: key, address: address.description, by: dial, at: now, random: 1)
    #expect(schedule.nextDue() == nil)
    now += 10_000
    schedule.closed(id, reason: nil, at: now, random: 0)
    #expect(schedule.nextDue() == now + 100)
  }

  @Test func shortSessionDoesNotReset() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    for round in 1...6 {
      let now = UInt64(round) * 100_000
      let dial = try #require(schedule.takeDue(at: now).first)
      let id = SessionID(rawValue: UInt64(round))
      schedule.opened(id, key: key, address: address.description, by: dial, at: now, random: 1)
      schedule.closed(id, reason: nil, at: now + 1, random: 1)
      #expect(schedule.nextDue() == now + 1 + 250 << UInt64(round - 1))
    }
  }

  @Test func membershipOnlyIsRedialledQuicklyForAWhile() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    var waits: [UInt64] = []
    for round in 1...8 {
      let now = UInt64(round) * 100_000
      let dial = try #require(schedule.takeDue(at: now).first)
      let id = SessionID(rawValue: UInt64(round))
      schedule.opened(id, key: key, address: address.description, by: dial, at: now, random: 1)
      schedule.closed(id, reason: .membershipOnly, at: now, random: 1)
      waits.append(try #require(schedule.nextDue()) - now)
    }
    #expect(waits == [250, 250, 250, 250, 250, 250, 500, 1000])
  }

  @Test func connectedDeviceIsNotDialledUntilItsSessionEnds() throws {
    var schedule = DialSchedule()
    let id = SessionID(rawValue: 1)
    schedule.opened(id, key: key, address: "198.51.100.7:4114", by: nil, at: 0, random: 1)
    schedule.setRemembered([address, other], of: deviceKeys(2).id, key: key)
    schedule.addStatic(try PeerAddress("198.51.100.7"))
    #expect(schedule.takeDue(at: 10).isEmpty)
    #expect(schedule.nextDue() == nil)
    schedule.closed(id, reason: nil, at: 1000, random: 0)
    #expect(schedule.takeDue(at: 1099).isEmpty)
    #expect(schedule.takeDue(at: 1100).count == 2)
  }

  @Test func duplicateIsNotRedialledWhileTheOtherSessionLives() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    let dial = try #require(schedule.takeDue(at: 0).first)
    let (ours, theirs) = (SessionID(rawValue: 1), SessionID(rawValue: 2))
    schedule.opened(theirs, key: key, address: "192.0.2.1:50000", by: nil, at: 5, random: 1)
    schedule.opened(ours, key: key, address: address.description, by: dial, at: 6, random: 1)
    schedule.closed(ours, reason: .duplicate, at: 7, random: 0)
    #expect(schedule.takeDue(at: 1_000_000).isEmpty)
    schedule.closed(theirs, reason: nil, at: 1_000_000, random: 0)
    #expect(schedule.takeDue(at: 1_000_100).count == 1)
  }

  @Test func ourselvesIsNotDialledUntilSomethingChanges() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    schedule.setRemembered([address], of: deviceKeys(2).id, key: key)
    for now in UInt64(0)...1 {
      let dial = try #require(schedule.takeDue(at: now).first)
      schedule.failed(dial, .ourselves, at: now, random: 0)
    }
    schedule.addStatic(address)
    #expect(schedule.nextDue() == nil)
    schedule.setRemembered([other], of: deviceKeys(2).id, key: key)
    #expect(schedule.takeDue(at: 2).map(\.address) == [other])
  }

  /// The device was called at none of its other addresses any more.
  @Test func anAddressThatIsOursNowEndedAllCallsOfItsDevice() throws {
    var schedule = DialSchedule()
    schedule.setRemembered([address, other], of: deviceKeys(2).id, key: key)
    let stale = try #require(schedule.takeDue(at: 0).first)
    #expect(stale.address == address)
    schedule.failed(stale, .ourselves, at: 0, random: 1)
    #expect(schedule.nextDue() == 250)
    #expect(schedule.takeDue(at: 250).map(\.address) == [other])
  }

  @Test func ourselvesIsDialledAgainOnceTheHostsAddressesChange() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    let dial = try #require(schedule.takeDue(at: 0).first)
    schedule.failed(dial, .ourselves, at: 0, random: 0)
    #expect(schedule.nextDue() == nil)
    schedule.redialOurselves()
    #expect(schedule.takeDue(at: 1).map(\.address) == [address])
  }

  @Test func anotherDeviceAtALearnedAddressPassedForTheDevice() throws {
    var schedule = DialSchedule()
    let (device, stranger) = (deviceKeys(2).id, deviceKeys(3).transportPublicKey)
    schedule.setRemembered([address, other], of: device, key: key)
    let dial = try #require(schedule.takeDue(at: 0).first)
    let wrong = SessionID(rawValue: 1)
    schedule.opened(
      wrong, key: stranger, address: address.description, by: dial, at: 0, random: 1)
    // That session lives on; the device is looked for elsewhere.
    #expect(schedule.nextDue() == 250)
    let next = try #require(schedule.takeDue(at: 250).first)
    #expect(next.address == other)
    schedule.failed(next, .unreachable(.nothingListens), at: 250, random: 1)
    // Not at the address at which it is known not to be.
    #expect(schedule.nextDue() == 750)
    let third = try #require(schedule.takeDue(at: 750).first)
    #expect(third.address == other)
    let right = SessionID(rawValue: 2)
    schedule.opened(right, key: key, address: other.description, by: third, at: 750, random: 1)
    schedule.closed(wrong, reason: nil, at: 800, random: 0)
    #expect(schedule.takeDue(at: 1_000_000).isEmpty)
    schedule.closed(right, reason: nil, at: 1_000_000, random: 0)
    #expect(schedule.takeDue(at: 2_000_000).count == 1)
  }

  @Test func olderKeysAndOtherAddressesTakeTurns() throws {
    var schedule = DialSchedule()
    schedule.setRemembered([address, other], of: deviceKeys(2).id, key: nil)
    var seen: [Dial] = []
    for round in 0..<3 {
      let dial = try #require(schedule.takeDue(at: UInt64(round) * 1000).first)
      seen.append(dial)
      schedule.failed(dial, .refused, at: UInt64(round) * 1000, random: 0)
    }
    #expect(seen.map(\.address) == [address, other, address])
    #expect(seen.map(\.pskIndex) == [0, 1, 2])
  }

  @Test func targetsAreBounded() throws {
    var schedule = DialSchedule()
    for port in 1...1000 {
      let isAdded = schedule.addStatic(try PeerAddress("192.0.2.1:\(port)"))
      #expect(isAdded == (port <= NetworkLimits.staticTargets))
    }
    let isKnown = schedule.addStatic(try PeerAddress("192.0.2.1:1"))
    #expect(isKnown)
    for _ in 0..<NetworkLimits.staticTargets / NetworkLimits.dials {
      let dials = schedule.takeDue(at: 0)
      #expect(dials.count == NetworkLimits.dials)
      for dial in dials { schedule.failed(dial, .unreachable(.nothingListens), at: 0, random: 0) }
    }
    #expect(schedule.takeDue(at: 0).isEmpty)
  }

  // MARK: What came of the calls

  @Test func `each address has its last call, and a person can call it again or take it back`()
    throws
  {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    schedule.setRemembered([address, other], of: deviceKeys(2).id, key: key)
    #expect(schedule.addresses.map(\.attempt) == [nil, nil, nil])
    let named = try #require(schedule.takeDue(at: 0, milliseconds: 7_000).first)
    #expect(named.target == .address(address))
    schedule.failed(named, .unreachable(.unknownHost), at: 0, random: 1)
    let remembered = try #require(schedule.takeDue(at: 1, milliseconds: 8_000).first)
    schedule.failed(remembered, .refused, at: 1, random: 1)
    var calls = schedule.addresses
    #expect(
      calls[0].attempt == DialAttempt(milliseconds: 7_000, failure: .unreachable(.unknownHost)))
    #expect(calls[1].attempt == DialAttempt(milliseconds: 8_000, failure: .refused))
    #expect(calls[2].attempt == nil && calls[2].device == deviceKeys(2).id)
    #expect(calls[0].ended == 1 && calls.allSatisfy { !$0.isConnected })
    // At once, though the next call is not due.
    schedule.hurry(address)
    let again = try #require(schedule.takeDue(at: 2).first)
    #expect(again.target == .address(address))
    schedule.opened(
      SessionID(rawValue: 1), key: key, address: address.description, by: again, at: 2, random: 1)
    calls = schedule.addresses
    #expect(calls[0].isConnected && calls[0].key == key && calls[0].attempt?.failure == nil)
    let isRemoved = schedule.removeStatic(address)
    let isRemovedAgain = schedule.removeStatic(address)
    #expect(isRemoved && !isRemovedAgain && schedule.addresses.count == 2)
    // Addresses that are no longer known take their calls with them.
    schedule.setRemembered([other], of: deviceKeys(2).id, key: key)
    schedule.setRemembered([address, other], of: deviceKeys(2).id, key: key)
    #expect(schedule.addresses.map(\.attempt) == [nil, nil])
  }

  @Test func `a person's address that is this node itself is called again on request`() throws {
    var schedule = DialSchedule()
    schedule.addStatic(address)
    for _ in 0..<2 {
      let dial = try #require(schedule.takeDue(at: 0).first)
      schedule.failed(dial, .ourselves, at: 0, random: 0)
      #expect(schedule.nextDue() == nil && schedule.addresses[0].attempt?.failure == .ourselves)
      schedule.hurry(address)
    }
  }

  // MARK: Many devices

  /// A schedule that has learned the addresses of so many devices.
  private func schedule(learning count: Int) throws -> (DialSchedule, [DeviceKeys]) {
    var schedule = DialSchedule(overlay: OverlayPlan(seed: 3))
    let devices = (0..<count).map { deviceKeys(UInt64(50 + $0)) }
    for (index, keys) in devices.enumerated() {
      schedule.setRemembered(
        [try PeerAddress("192.0.2.\(10 + index)")], of: keys.id, key: keys.transportPublicKey)
    }
    return (schedule, devices)
  }

  @Test func `few devices are all dialled, and of many some`() throws {
    var few = try schedule(learning: 7).0
    #expect(few.takeDue(at: 0).count == 7)
    let (remembered, devices) = try schedule(learning: 30)
    var many = remembered
    let dials = many.takeDue(at: 0)
    #expect(dials.count == 4)
    // The sessions live: nobody else is dialled, but for another that is drawn, much later.
    for (index, dial) in dials.enumerated() {
      guard case .device(let id) = dial.target, let keys = devices.first(where: { $0.id == id })
      else { continue }
      many.opened(
        SessionID(rawValue: UInt64(index + 1)), key: keys.transportPublicKey,
        address: dial.address.description, by: dial, at: 0, random: 0)
    }
    #expect(many.takeDue(at: 1_000).isEmpty)
    #expect(try #require(many.nextDue()) > 300_000)
    // A session that breaks is replaced by one with another device.
    many.closed(SessionID(rawValue: 1), reason: nil, at: 20_000, random: 0)
    let next = many.takeDue(at: 20_000)
    #expect(next.count == 1)
    #expect(!dials.map(\.target).contains(try #require(next.first).target))
  }

  @Test func `a device left behind is dialled beside the drawn ones`() throws {
    let (remembered, devices) = try schedule(learning: 30)
    var many = remembered
    let drawn = Set(many.takeDue(at: 0).map(\.target))
    let behind = devices.map(\.id).sorted().filter { !drawn.contains(.device($0)) }
    many.setLeftBehind(Array(behind.suffix(1)))
    #expect(many.takeDue(at: 10).map(\.target) == behind.suffix(1).map { .device($0) })
  }

  @Test func `one of too many accepted sessions is ended after a while, and configured ones never`()
    throws
  {
    let (remembered, devices) = try schedule(learning: 30)
    var many = remembered
    many.addStatic(address)
    let dials = many.takeDue(at: 0)
    let toAddress = try #require(dials.first { $0.target == .address(address) })
    many.opened(
      SessionID(rawValue: 100), key: key, address: address.description, by: toAddress, at: 0,
      random: 0)
    for index in 0..<12 {
      many.opened(
        SessionID(rawValue: UInt64(index + 1)), key: devices[index].transportPublicKey,
        address: "192.0.2.\(10 + index):4114", by: nil, at: 0, random: 0)
    }
    _ = many.takeDue(at: 1_000)
    #expect(many.takeSurplus().isEmpty)
    _ = many.takeDue(at: 31_000)
    let surplus = many.takeSurplus()
    #expect(surplus.count == 1)
    #expect(surplus != [SessionID(rawValue: 100)])
  }
}
