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
