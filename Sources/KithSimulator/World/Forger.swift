internal import KithCore
internal import KithCrypto

/// Counts for traitors, which publish under their own incarnations beside their replica's.
struct Forger {
  struct Shadow {
    var chain: ChainID
    var sequence: UInt64 = 0
  }

  private var shadows: [DeviceNumber: [StoreIdentifier: Shadow]] = [:]
  /// Messages that traitors may repeat, the newest last.
  private var seen: [[UInt8]] = []

  mutating func next(
    _ device: SimulatedDevice, _ store: StoreIdentifier, _ chance: inout SeededEntropy
  ) -> Shadow {
    var shadow =
      shadows[device.number]?[store]
      ?? Shadow(
        chain: ChainID(
          device: device.keys.id, incarnation: Incarnation(rawValue: chance.next())))
    shadow.sequence += 1
    shadows[device.number, default: [:]][store] = shadow
    return shadow
  }

  mutating func skip(to sequence: UInt64, _ device: SimulatedDevice, _ store: StoreIdentifier) {
    shadows[device.number]?[store]?.sequence = sequence
  }

  mutating func remember(_ message: [UInt8]) {
    seen.append(message)
    if seen.count > 16 { seen.removeFirst() }
  }

  func replay(_ chance: inout SeededEntropy) -> [UInt8]? { seen.randomElement(using: &chance) }
}

/// Messages that a member can sign and send, and its own replica would not.
extension Simulation {
  func forge(
    _ forgery: Forgery, by device: SimulatedDevice, to peer: SimulatedDevice,
    in store: StoreIdentifier
  ) throws(Violation) {
    guard device.number != peer.number,
      let session = session(of: device, with: peer.number)
    else { return }
    tally.count("forgeries: \(forgery.rawValue)")
    trace.note("forge", [UInt64(device.number), UInt64(peer.number)], at: now, forgery.rawValue)
    device.isTraitor = true
    if forgery == .flood { flooded.insert(store) }
    var messages = messages(forgery, by: device, to: peer, in: store)
    if forgery == .fork, let other = messages.popLast() {
      // The other side of the fork goes to another device.
      let third = devices.first { third in
        third.number != device.number && third.number != peer.number
          && self.session(of: device, with: third.number) != nil
      }
      if let third, let session = self.session(of: device, with: third.number) {
        try send(other, on: session, from: device, isForged: true)
      }
    }
    for message in messages {
      forger.remember(message)
      try send(message, on: session, from: device, isForged: true)
    }
  }

  private func session(of device: SimulatedDevice, with peer: DeviceNumber) -> SessionID? {
    let exchanging = Set(device.replica?.exchangingSessions ?? [])
    return (sessions[device.number] ?? [:]).filter { session, endpoint in
      exchanging.contains(session)
        && connections[endpoint.connection]?.isOpen == true
        && connections[endpoint.connection]?.pipes[endpoint.end].to == peer
    }.keys.min()
  }

  private func messages(
    _ forgery: Forgery, by device: SimulatedDevice, to peer: SimulatedDevice,
    in store: StoreIdentifier
  ) -> [[UInt8]] {
    switch forgery {
    case .garbage: return [[0xFF, 0x07, 0x80]]
    case .replay: return forger.replay(&nemesisChance).map { [$0] } ?? []
    case .boastfulVector:
      var vector = device.replica?.inspect(store)?.covered ?? [:]
      for chain in vector.keys { vector[chain] = 1 << 40 }
      let have = StoreHave(
        store: store, vector: vector, digest: nil, policy: policy())
      return Have(
        number: 0, isWhole: true, listsAll: false, stores: [have]
      ).messages()
    case .boastfulCover:
      let covered = device.replica?.inspect(store)?.covered ?? [:]
      return Batch(
        store: store,
        covers: covered.sorted { $0.key < $1.key }.map {
          Cover(chain: $0.key, from: 0, through: $0.value + 1_000)
        }
      ).messages()
    case .lastGeneration:
      // A device that has received no earlier time takes it over once its own clock is past 2046,
      // when the ration reaches it. Its clock tells that, and not its core, whose bug this may be.
      let years: UInt64 = 19
      guard peer.clock.instant(at: now).wallMilliseconds < HostClock.origin + years * 31_557_600_000
      else { return [] }
      return signed(forgery, by: device, to: peer, in: store)
    case .flood:
      return (0..<120).flatMap { number in
        signed(forgery, by: device, to: peer, in: store, number: number)
      }
    case .fork:
      let first = signed(forgery, by: device, to: peer, in: store)
      // A device that cannot sign, such as a revoked one, has nothing to fork.
      guard !first.isEmpty else { return [] }
      let chain = forger.next(device, store, &nemesisChance)
      forger.skip(to: chain.sequence - 2, device, store)
      return first + signed(forgery, by: device, to: peer, in: store)
    default: return signed(forgery, by: device, to: peer, in: store)
    }
  }

  /// A batch of one change set, signed by the traitor and wrong in one way.
  private func signed(
    _ forgery: Forgery, by device: SimulatedDevice, to peer: SimulatedDevice,
    in store: StoreIdentifier, number: Int = 0
  ) -> [[UInt8]] {
    guard let replica = device.replica, let epoch = replica.keyring.current,
      let certificate = replica.roster.certificate(of: device.keys.id)
    else { return [] }
    var keyring = replica.keyring
    guard let box = keyring.sharedBox(epoch: epoch.id, author: certificate) else { return [] }
    var shadow = forger.next(device, store, &nemesisChance)
    let from = shadow.sequence - 1
    if forgery == .unknownToItself, let own = replica.ownChain {
      let received = replica.inspect(store)?.received[own] ?? 0
      shadow = Forger.Shadow(chain: own, sequence: received + 1)
    }
    if forgery == .sequenceGap {
      shadow.sequence += 4
      forger.skip(to: shadow.sequence, device, store)
    }
    let wall = device.clock.instant(at: now).wallMilliseconds
    let clock = HybridTime(
      generation: forgery == .lastGeneration
        ? .max : max(replica.hybridClock.generation, HybridTime.firstGeneration),
      milliseconds: wall + (forgery == .farFuture ? 1 << 38 : 0))
    let sealer = Sealer(
      box: box,
      storeTag: epoch.storeTag(
        of: forgery == .wrongStore
          ? StoreIdentifier("com.example.Elsewhere") ?? store : store),
      epoch: forgery == .unknownEpoch ? EpochID(nemesisChance.draw()) : epoch.id,
      chain: shadow.chain, account: account, keys: device.keys)
    let entry = entry(
      forgery, clock: clock, by: device.keys.id, of: peer.keys.id, number: number)
    var changeSet = sealer.seal(
      [entry.plaintext()], sequence: forgery == .sequenceZero ? 0 : shadow.sequence,
      clock: clock, noncePrefix: nemesisChance.draw())
    if forgery == .badSignature { changeSet.stored.signature[7] ^= 1 }
    return Batch(
      store: store, changeSets: [changeSet],
      covers: [
        Cover(chain: shadow.chain, from: from, through: max(from, shadow.sequence))
      ]
    ).messages()
  }

  private func entry(
    _ forgery: Forgery, clock: HybridTime, by author: DeviceID, of peer: DeviceID, number: Int
  ) -> Entry {
    let isTooLarge = forgery == .overPolicy || forgery == .flood
    let size =
      isTooLarge
      ? min(setup.valueBytes + 50, 20_000) : Int.random(in: 0...60, using: &nemesisChance)
    let name =
      forgery == .flood
      ? "flood\(number)" : "key\(Int.random(in: 0..<setup.keySpace, using: &nemesisChance))"
    let text = "\(Self.secret)forged \(nemesisChance.next()) " + String(repeating: "f", count: size)
    let late = HybridTime(rawValue: clock.rawValue + 5_000)
    let claim = Claim(
      clock: forgery == .claimAfterHeader ? late : clock, device: author, group: 0)
    var fallback: Fallback?
    if forgery == .lateFallback, let value = try? EncodedValue(.integer(1)) {
      fallback = Fallback(value: value, claim: claim)
    }
    let value = (try? EncodedValue(.string(text))) ?? EncodedValue(trusting: [])
    return Entry(
      key: Key("\(Self.secret)\(name)"),
      stamp: Stamp(
        clock: forgery == .stampAfterHeader ? late : clock,
        device: forgery == .foreignStamp ? peer : author),
      content: .value(value), claim: claim, replaced: nil, fallback: fallback)
  }
}
