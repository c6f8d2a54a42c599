import KithCore
import Testing

@testable import KithNetwork

struct NeighboursTests {
  let device = deviceKeys(2).id

  private func address(_ host: Int) throws -> PeerAddress { try PeerAddress("192.0.2.\(host)") }

  @Test func newAddressesComeFirstAndKnownOnesStay() throws {
    var neighbours = Neighbours()
    let (one, two) = (try address(1), try address(2))
    #expect(neighbours.heard(device, at: one, now: 0) == [one])
    #expect(neighbours.heard(device, at: two, now: 1) == [two, one])
    #expect(neighbours.heard(device, at: one, now: 2) == [two, one])
    // The one heard the longest ago goes.
    for host in 3...5 { _ = neighbours.heard(device, at: try address(host), now: UInt64(host)) }
    #expect(try neighbours.heard(device, at: one, now: 9) == [5, 4, 3, 1].map { try address($0) })
    #expect(neighbours.all(now: 10).map(\.milliseconds) == [1])
    #expect(neighbours.all(now: 10)[0].addresses.first == "192.0.2.5:4114")
  }

  @Test func silentOnesAreForgotten() throws {
    var neighbours = Neighbours()
    let (one, two) = (try address(1), try address(2))
    _ = neighbours.heard(device, at: one, now: 0)
    _ = neighbours.heard(device, at: two, now: 10)
    let most = NetworkLimits.foundMilliseconds
    #expect(neighbours.expire(now: most - 1) == [:])
    #expect(neighbours.expire(now: most) == [device: [two]])
    #expect(neighbours.expire(now: most + 10) == [device: []])
    #expect(neighbours.all(now: most + 10) == [])
  }

  @Test func beaconsAreSentOftenAtFirstAndAfterAChange() {
    var schedule = BeaconSchedule()
    #expect(schedule.changed(random: 0.5) == 100)
    #expect(
      (0..<8).map { _ in schedule.next(random: 0.5) }.map { $0 / 1_000 } == [
        1, 2, 4, 8, 16, 32, 60, 60,
      ])
    #expect(schedule.changed(random: 0) == 0)
    #expect(schedule.next(random: 0) == 875)
    #expect(schedule.next(random: 0.999) < 2_250)
  }
}

/// The addresses that are heard on the link, in the schedule.
struct FoundAddressesTests {
  let address: PeerAddress
  let other: PeerAddress
  let device = deviceKeys(2).id
  let key = deviceKeys(2).transportPublicKey

  init() throws {
    address = try PeerAddress("192.0.2.1")
    other = try PeerAddress("192.0.2.2")
  }

  @Test func aDeviceThatIsHeardIsDialledAtOnce() throws {
    var schedule = DialSchedule()
    schedule.setFound([address], of: device, key: key, isNew: true, at: 1_000)
    #expect(schedule.takeDue(at: 1_000).map(\.address) == [address])
  }

  @Test func whatIsHeardComesBeforeHearsayAndDisplacesNothing() throws {
    var schedule = DialSchedule()
    schedule.addStatic(other)
    schedule.setRemembered([other], of: device, key: key)
    schedule.setFound([address], of: device, key: key, isNew: true, at: 1_000)
    #expect(
      schedule.takeDue(at: 1_000)
        == [
          Dial(target: .address(other), address: other, pskIndex: 0),
          Dial(target: .device(device), address: address, pskIndex: 0),
        ])
    // Hearsay, however much of it, leaves it first.
    schedule.failed(
      Dial(target: .device(device), address: address, pskIndex: 0), .unreachable(.nothingListens),
      at: 1_000,
      random: 1)
    let many = try (10..<30).map { try PeerAddress("198.51.100.\($0)") }
    schedule.setRemembered(many, of: device, key: key)
    #expect(schedule.takeDue(at: 2_000).map(\.address) == [address])
    // A device that is gone from the link is dialled at the address at which it was met.
    schedule.failed(
      Dial(target: .device(device), address: address, pskIndex: 0), .unreachable(.nothingListens),
      at: 2_000,
      random: 1)
    schedule.setFound([], of: device, key: nil, isNew: false, at: 300_000)
    #expect(schedule.takeDue(at: 300_000).map(\.address) == [many[0]])
  }

  @Test func hearingADeviceEndsALongWaitAndDoesNotMakeUsDialOftenForIt() throws {
    var schedule = DialSchedule()
    var now: UInt64 = 1_000_000
    schedule.setFound([address], of: device, key: key, isNew: true, at: now)
    var dials = 0
    // Nothing answers, and beacons of ever new boots and sources pour in: half an hour of it.
    for _ in 0..<18_000 {
      now += 100
      let source = try PeerAddress("192.0.2.\(now / 100 % 200 + 1)")
      schedule.setFound([source], of: device, key: key, isNew: true, at: now)
      for dial in schedule.takeDue(at: now) {
        dials += 1
        schedule.failed(dial, .unreachable(.nothingListens), at: now, random: 1)
      }
    }
    #expect(dials <= 1_800 / 5 + 10)
    #expect(dials > 300)
    // Without anything new, as for a configured address.
    schedule.setFound([address], of: device, key: key, isNew: false, at: now)
    dials = 0
    let begun = now
    while now < begun + 300_000 {
      now += 1_000
      if now % 60_000 == 0 {
        schedule.setFound([address], of: device, key: key, isNew: false, at: now)
      }
      for dial in schedule.takeDue(at: now) {
        dials += 1
        schedule.failed(dial, .unreachable(.nothingListens), at: now, random: 1)
      }
    }
    #expect((4...11).contains(dials))
  }

  @Test func noWaitIsMadeLonger() throws {
    var schedule = DialSchedule()
    schedule.setFound([address], of: device, key: key, isNew: true, at: 1_000)
    let dial = try #require(schedule.takeDue(at: 1_000).first)
    schedule.failed(dial, .unreachable(.nothingListens), at: 1_000, random: 1)
    #expect(schedule.nextDue() == 1_250)
    schedule.setFound([address], of: device, key: key, isNew: false, at: 1_100)
    #expect(schedule.nextDue() == 1_250)
    schedule.setFound([other, address], of: device, key: key, isNew: true, at: 1_100)
    #expect(schedule.nextDue() == 1_250)
  }

  /// A device that is heard elsewhere may have left its sessions behind, but none of another device.
  @Test func sessionsAtAnotherHostAreTheOnesInDoubt() throws {
    var schedule = DialSchedule()
    let another = deviceKeys(3).transportPublicKey
    for (number, key, address) in [
      (1, key, "192.0.2.1:4114"), (2, key, "192.0.2.1:50123"), (3, another, "192.0.2.1:4115"),
      (4, key, "[fe80::1%2]:4114"),
    ] {
      schedule.opened(
        SessionID(rawValue: UInt64(number)), key: key, address: address, by: nil, at: 0, random: 1)
    }
    func doubted(_ host: String) -> [UInt64] {
      schedule.sessions(with: key, butAt: host).map(\.rawValue)
    }
    #expect(doubted("192.0.2.1") == [4])
    #expect(doubted("fe80::1%2") == [1, 2])
    #expect(doubted("192.0.2.9") == [1, 2, 4])
  }
}
