@testable import KithCrypto

@testable import KithCore

/// One device that hears datagrams: beacons that members really seal, altered, told again and from
/// elsewhere; plaintexts under the right key that nobody signed; any bytes; and time.
private struct Listening {
  static let epochs: [EpochKeys] = (0..<3).map { (number: UInt64) in
    var entropy = SeededEntropy(seed: 500 + number)
    return EpochKeys(secret: EpochSecret(random: &entropy), generation: UInt32(3 - number))
  }

  let devices = FuzzAccount.shared.devices
  /// All but the last, which was one once and still has the keys.
  let members: Set<DeviceID>
  var judge: BeaconJudge
  var entropy = SeededEntropy(seed: 9)
  var now: UInt64 = 1_000_000
  /// The beacons that members signed themselves.
  var signed: Set<Beacon> = []
  /// The newest counter of each boot that counted, of the few last boots.
  var counters: [DeviceID: [(boot: UInt64, counter: UInt64)]] = [:]
  var meddler = Meddler()

  init() {
    members = Set(devices.dropLast().map(\.id))
    judge = BeaconJudge(account: FuzzAccount.shared.id, device: devices[0].id)
  }

  mutating func beacon(_ input: inout FuzzInput) -> [UInt8] {
    let speaker = input.number(below: devices.count)
    let signer = input.bool() ? speaker : input.number(below: devices.count)
    let isForThisAccount = input.byte() != 0xff
    let beacon = Beacon(
      device: devices[speaker].id, port: UInt16(max(1, input.byte())),
      boot: UInt64(input.number(below: 6)), counter: UInt64(input.number(below: 8)))
    if signer == speaker, isForThisAccount { signed.insert(beacon) }
    return beacon.sealed(
      account: isForThisAccount ? FuzzAccount.shared.id : AccountID(entropy.draw()),
      key: devices[signer].signing, epoch: Self.epochs[input.number(below: 3)],
      nonce: entropy.draw())
  }

  mutating func hear(_ datagram: [UInt8], _ input: inout FuzzInput) {
    let source = "192.0.2.\(input.number(below: 8))"
    // The last epoch is none that this device opens.
    let verdict = judge.judge(
      datagram, from: source, epochs: Array(Self.epochs.prefix(2)), at: now
    ) { members.contains($0) }
    guard case .found(let beacon, _) = verdict else { return }
    require(datagram.count == Beacon.byteCount, "a datagram of another length counted")
    require(signed.contains(beacon), "what nobody signed counted")
    require(members.contains(beacon.device), "a device that is no member counted")
    require(
      beacon.device != devices[0].id && beacon.port != 0, "a beacon that leads nowhere counted")
    var known = counters[beacon.device] ?? []
    if let index = known.firstIndex(where: { $0.boot == beacon.boot }) {
      require(beacon.counter >= known[index].counter, "a stale beacon counted")
      known.remove(at: index)
    }
    known.append((beacon.boot, beacon.counter))
    counters[beacon.device] = known.suffix(Limits.beaconBoots)
  }
}

extension FuzzTarget {
  /// Datagrams: beacons to ``BeaconJudge``, and announcements of invitations.
  ///
  /// A beacon counts only if a member other than the listener signed it itself, and never if it is
  /// older than another of the same boot. An announcement has one form.
  static let discovery = FuzzTarget(name: "discovery") { bytes in
    var input = FuzzInput(bytes)
    let whole = Array(bytes)
    if let announcement = InvitationAnnouncement(decoding: whole) {
      require(announcement.encoded() == whole, "an announcement has another form")
      require(announcement.port != 0, "an announcement leads nowhere")
    }
    var listening = Listening()
    for _ in 0..<32 where !input.isAtEnd {
      switch input.number(below: 5) {
      case 0, 1:
        let beacon = listening.beacon(&input)
        listening.hear(listening.meddler.pass(beacon, &input), &input)
      case 2:
        // Any device that has the key can seal any bytes.
        var nonce = SeededEntropy(seed: UInt64(input.byte()))
        let sealed = Listening.epochs[0].beaconKey.seal(
          input.block().prefix(120) + [], nonce: nonce.draw())
        listening.hear(sealed, &input)
      case 3: listening.hear(input.block(), &input)
      default: listening.now += UInt64(input.byte()) * 10
      }
    }
  } seeds: {
    var seeds: [(String, [UInt8])] = []
    /// Speaker, signed by itself, for this account, port, boot, counter, epoch; unaltered; source.
    func beacon(_ speaker: Int, _ counter: Int, way: [Int] = [11], source: Int = 1) -> [UInt8] {
      [0, speaker, 1, 0, 22, 1, counter, 0].map { UInt8($0) } + (way + [source]).map { UInt8($0) }
    }
    seeds.append(("beacons", beacon(1, 1) + beacon(2, 1) + beacon(1, 2)))
    seeds.append(("stale", beacon(1, 3) + beacon(1, 2) + beacon(1, 3)))
    seeds.append(("told again", beacon(1, 1) + beacon(1, 2, way: [3, 0], source: 2)))
    seeds.append(("altered", beacon(1, 1, way: [4, 0, 40, 1])))
    seeds.append(("ourselves and not members", beacon(0, 1) + beacon(3, 1)))
    seeds.append(("for another", [0, 1, 0, 2, 0, 22, 1, 5, 0, 11, 1] + beacon(1, 1)))
    seeds.append(("another account", [0, 1, 1, 0xff, 22, 1, 5, 0, 11, 1]))
    seeds.append(("old epochs", [0, 1, 1, 0, 22, 1, 5, 1, 11, 1, 0, 2, 1, 0, 22, 1, 5, 2, 11, 1]))
    var output = FuzzOutput()
    output.bytes(2, 7)
    output.block([1] + [UInt8](repeating: 3, count: 119))
    output.byte(1)
    output.byte(3)
    output.block([UInt8](repeating: 7, count: 160))
    output.bytes(1, 4, 200)
    seeds.append(("sealed and raw", output.bytes))
    var entropy = SeededEntropy(seed: 10)
    seeds.append(
      ("announcement", InvitationAnnouncement(id: entropy.draw(), port: 4115).encoded()))
    return seeds
  }
}
