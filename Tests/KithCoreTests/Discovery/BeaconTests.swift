import KithCrypto
import Testing

@testable import KithCore

/// Beacons of devices of one account, under epochs that are the same in every run.
struct BeaconMaker {
  var entropy = SeededEntropy(seed: 5)
  let account: AccountID
  let epochs: [EpochKeys]

  init() throws {
    account = try Fixture().account
    epochs = (0..<10).map { number in
      var entropy = SeededEntropy(seed: 400 + UInt64(number))
      return EpochKeys(secret: EpochSecret(random: &entropy), generation: UInt32(10 - number))
    }
  }

  mutating func sealed(
    _ beacon: Beacon, by keys: DeviceKeys, epoch: Int = 0, account other: AccountID? = nil
  ) -> [UInt8] {
    beacon.sealed(
      account: other ?? account, key: keys.signing, epoch: epochs[epoch], nonce: entropy.draw())
  }
}

@Suite struct BeaconTests {
  let sender = deviceKeys(2)

  private func beacon(_ counter: UInt64 = 1) -> Beacon {
    Beacon(device: sender.id, port: 4114, boot: 0x0102_0304_0506_0708, counter: counter)
  }

  @Test func `a beacon has 160 bytes and says what was said`() throws {
    var maker = try BeaconMaker()
    for beacon in [
      beacon(), beacon(.max), Beacon(device: sender.id, port: .max, boot: .max, counter: 0),
      Beacon(device: sender.id, port: 1, boot: 0, counter: 1 << 53),
    ] {
      let sealed = maker.sealed(beacon, by: sender)
      #expect(sealed.count == 160)
      let opened = try #require(OpenedBeacon(sealed, epoch: maker.epochs[0]))
      #expect(opened.beacon == beacon)
      #expect(opened.isSigned(in: maker.account))
    }
  }

  /// Without the key nothing tells two beacons of one device from random bytes: no byte has a value
  /// that it has more often than chance has it, in any place.
  @Test func `beacons look like random bytes`() throws {
    var maker = try BeaconMaker()
    let count = 512
    var seen = [[Int]](repeating: [Int](repeating: 0, count: 256), count: 160)
    var counts = [Int](repeating: 0, count: 256)
    for number in 0..<count {
      let bytes = maker.sealed(beacon(UInt64(number)), by: sender)
      for (place, byte) in bytes.enumerated() {
        seen[place][Int(byte)] += 1
        counts[Int(byte)] += 1
      }
    }
    // A place expects each value twice. For all places together, 15 times has a chance below 1 in
    // 10^8.
    #expect(seen.allSatisfy { $0.allSatisfy { $0 < 15 } })
    let expected = Double(count * 160) / 256
    let squares = counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) }
    // Chi-squared with 255 degrees of freedom: the mean 255, the deviation 22.6.
    #expect(squares / expected < 400)
  }

  @Test func `another epoch's key, another size and any changed byte open nothing`() throws {
    var maker = try BeaconMaker()
    let sealed = maker.sealed(beacon(), by: sender)
    #expect(OpenedBeacon(sealed, epoch: maker.epochs[1]) == nil)
    #expect(OpenedBeacon(sealed + [0], epoch: maker.epochs[0]) == nil)
    #expect(OpenedBeacon(Array(sealed.dropLast()), epoch: maker.epochs[0]) == nil)
    #expect(OpenedBeacon([], epoch: maker.epochs[0]) == nil)
    for place in sealed.indices {
      var changed = sealed
      changed[place] ^= 1
      #expect(OpenedBeacon(changed, epoch: maker.epochs[0]) == nil, "byte \(place)")
    }
  }

  @Test func `a version that is not known, and no port, are nobody's`() throws {
    var maker = try BeaconMaker()
    let known = maker.sealed(beacon(), by: sender)
    var plaintext = try maker.epochs[0].beaconKey.open(known)
    for (place, value) in [(0, UInt8(2)), (0, 0)] {
      var other = plaintext
      other[place] = value
      let sealed = maker.epochs[0].beaconKey.seal(other, using: &maker.entropy)
      #expect(sealed.count == 160)
      #expect(OpenedBeacon(sealed, epoch: maker.epochs[0]) == nil)
    }
    plaintext.replaceSubrange(33..<35, with: [0, 0])
    let portless = maker.epochs[0].beaconKey.seal(plaintext, using: &maker.entropy)
    #expect(OpenedBeacon(portless, epoch: maker.epochs[0]) == nil)
  }

  @Test func `only the device itself can sign, and for its account only`() throws {
    var maker = try BeaconMaker()
    let forged = maker.sealed(beacon(), by: deviceKeys(3))
    #expect(
      try #require(OpenedBeacon(forged, epoch: maker.epochs[0])).isSigned(in: maker.account)
        == false)
    let other = AccountID(Blake2b.digest256([1]))
    let foreign = maker.sealed(beacon(), by: sender, account: other)
    #expect(
      try #require(OpenedBeacon(foreign, epoch: maker.epochs[0])).isSigned(in: maker.account)
        == false)
  }
}

@Suite struct BeaconJudgeTests {
  /// The input of one device's listening: the beacons, the epochs and the members.
  struct Listener {
    var maker: BeaconMaker
    var judge: BeaconJudge
    let ourselves = deviceKeys(1)
    let peer = deviceKeys(2)
    var members: Set<DeviceID>
    var epochKeys: [EpochKeys]
    var now: UInt64 = 1_000_000

    init() throws {
      maker = try BeaconMaker()
      judge = BeaconJudge(account: maker.account, device: ourselves.id)
      members = [ourselves.id, peer.id]
      epochKeys = [maker.epochs[0]]
    }

    mutating func hear(_ datagram: [UInt8], from source: String = "192.0.2.2")
      -> BeaconJudge.Verdict
    {
      judge.judge(datagram, from: source, epochs: epochKeys, at: now) { members.contains($0) }
    }

    mutating func sealed(
      _ counter: UInt64, boot: UInt64 = 1, by keys: DeviceKeys? = nil, epoch: Int = 0
    ) -> [UInt8] {
      let keys = keys ?? peer
      return maker.sealed(
        Beacon(device: keys.id, port: 4114, boot: boot, counter: counter), by: keys, epoch: epoch)
    }

    mutating func hear(
      _ counter: UInt64, boot: UInt64 = 1, from source: String = "192.0.2.2"
    ) -> BeaconJudge.Verdict {
      hear(sealed(counter, boot: boot), from: source)
    }
  }

  private static func isFound(_ verdict: BeaconJudge.Verdict, isNew: Bool) -> Bool {
    if case .found(_, isNew) = verdict { true } else { false }
  }

  @Test func `a member is found, and new once`() throws {
    var listener = try Listener()
    #expect(
      listener.hear(1)
        == .found(Beacon(device: listener.peer.id, port: 4114, boot: 1, counter: 1), isNew: true))
    #expect(Self.isFound(listener.hear(2), isNew: false))
    #expect(Self.isFound(listener.hear(7), isNew: false))
    #expect(Self.isFound(listener.hear(8, from: "fe80::1%2"), isNew: true))
    #expect(Self.isFound(listener.hear(1, boot: 2), isNew: true))
  }

  @Test func `old counters are dropped, of each boot by itself`() throws {
    var listener = try Listener()
    let first = listener.sealed(5)
    #expect(Self.isFound(listener.hear(first), isNew: true))
    #expect(listener.hear(first) == .stale)
    #expect(listener.hear(4) == .stale)
    // The same counter, sealed anew.
    #expect(listener.hear(5) == .stale)
    #expect(Self.isFound(listener.hear(1, boot: 2), isNew: true))
    #expect(listener.hear(5) == .stale)
    #expect(Self.isFound(listener.hear(6), isNew: false))
  }

  @Test func `one beacon counts from several links, not from any number`() throws {
    var listener = try Listener()
    let beacon = listener.sealed(1)
    for host in 1...4 {
      #expect(Self.isFound(listener.hear(beacon, from: "192.0.2.\(host)"), isNew: true))
    }
    #expect(listener.hear(beacon, from: "192.0.2.1") == .stale)
    #expect(listener.hear(beacon, from: "192.0.2.5") == .stale)
    // The same counter with another port is no copy of it.
    let other = listener.maker.sealed(
      Beacon(device: listener.peer.id, port: 4115, boot: 1, counter: 1), by: listener.peer)
    #expect(listener.hear(other, from: "192.0.2.6") == .stale)
  }

  @Test func `neither ourselves, nor strangers, nor who was revoked`() throws {
    var listener = try Listener()
    #expect(listener.hear(listener.sealed(1, by: listener.ourselves)) == .ourselves)
    #expect(listener.hear(listener.sealed(1, by: deviceKeys(9))) == .notAMember)
    #expect(listener.hear([UInt8](repeating: 0, count: 160)) == .strange)
    #expect(listener.hear([UInt8](repeating: 0, count: 159)) == .strange)
    #expect(listener.hear([]) == .strange)
    #expect(Self.isFound(listener.hear(1), isNew: true))
    listener.members = [listener.ourselves.id]
    #expect(listener.hear(2) == .notAMember)
  }

  /// Otherwise a device that once had the key could make any claim about any member. It could also
  /// silence a member for ever, with a counter that the member does not reach.
  @Test func `a member speaks for itself alone`() throws {
    var listener = try Listener()
    listener.members.insert(deviceKeys(3).id)
    let forged = listener.maker.sealed(
      Beacon(device: listener.peer.id, port: 22, boot: 1, counter: .max), by: deviceKeys(3))
    #expect(listener.hear(forged) == .notAMember)
    #expect(Self.isFound(listener.hear(1), isNew: true))
    #expect(listener.hear(forged) == .notAMember)
    #expect(Self.isFound(listener.hear(2), isNew: false))
  }

  @Test func `older epochs are tried too, so many of them`() throws {
    var listener = try Listener()
    listener.epochKeys = listener.maker.epochs
    #expect(Self.isFound(listener.hear(listener.sealed(1, epoch: 7)), isNew: true))
    #expect(listener.hear(listener.sealed(2, epoch: 8)) == .strange)
    listener.epochKeys = []
    #expect(listener.hear(listener.sealed(2, epoch: 0)) == .strange)
  }

  @Test func `a flood costs so much and no more`() throws {
    var listener = try Listener()
    listener.epochKeys = Array(listener.maker.epochs.prefix(2))
    let noise = [UInt8](repeating: 7, count: 160)
    var looked = 0
    while listener.hear(noise) == .strange { looked += 1 }
    #expect(looked == Limits.beaconWorkPerSecond)
    #expect(listener.hear(1) == .tooMany)
    // It fills by the time that passes, and at most by a second's and its burst.
    listener.now += 1_000
    #expect(Self.isFound(listener.hear(1), isNew: true))
    listener.now += 3_600_000
    looked = 0
    while listener.hear(noise) == .strange { looked += 1 }
    #expect(looked == Limits.beaconWorkPerSecond)
    // A clock that goes back brings nothing.
    listener.now -= 3_600_000
    #expect(listener.hear(noise) == .tooMany)
  }

  @Test func `signatures cost more than openings`() throws {
    var listener = try Listener()
    var count: UInt64 = 0
    while listener.hear(
      listener.maker.sealed(
        Beacon(device: listener.peer.id, port: 1, boot: 1, counter: count), by: deviceKeys(3)))
      == .notAMember
    { count += 1 }
    #expect(count == UInt64(2 * Limits.beaconWorkPerSecond / (1 + Limits.beaconVerificationWork)))
  }

  @Test func `few boots of a device are remembered`() throws {
    var listener = try Listener()
    for boot in 0..<UInt64(Limits.beaconBoots) {
      #expect(Self.isFound(listener.hear(9, boot: boot), isNew: true))
    }
    #expect(listener.hear(9, boot: 0) == .stale)
    #expect(Self.isFound(listener.hear(9, boot: 100), isNew: true))
    // Forgotten, so that an old beacon counts again: it makes us dial at most, and not often.
    #expect(Self.isFound(listener.hear(9, boot: 0), isNew: true))
    #expect(listener.hear(9, boot: 100) == .stale)
  }
}

@Suite struct TokenBucketTests {
  @Test func `it gives so many at once and so many a second`() {
    var bucket = TokenBucket(4, per: 2_000)
    let takes: [(count: Int, at: UInt64, isGiven: Bool)] = [
      (4, 100, true), (1, 100, false), (1, 599, false), (1, 600, true), (2, 1_100, false),
      (2, 1_600, true), (1, 0, false), (4, .max, true), (1, .max, false),
    ]
    for (count, moment, isGiven) in takes {
      let given = bucket.spend(count, at: moment)
      #expect(given == isGiven, "\(count) at \(moment)")
    }
  }

  @Test func `it lends, and tells when the debt is over`() {
    var bucket = TokenBucket(4, per: 2_000)
    let loans: [(count: Int, at: UInt64, wait: UInt64)] = [
      (4, 100, 0), (1, 100, 500), (1, 350, 750), (0, 1_099, 1), (0, 1_100, 0), (1, 1_600, 0),
    ]
    for (count, moment, wait) in loans {
      let lent = bucket.borrow(count, at: moment)
      #expect(lent == wait, "\(count) at \(moment)")
    }
  }
}
