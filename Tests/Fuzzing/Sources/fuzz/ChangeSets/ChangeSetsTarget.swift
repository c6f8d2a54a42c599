@testable import KithCrypto

@testable import KithCore

extension FuzzTarget {
  /// Change sets that members signed, with any content, taken in by two devices in two orders.
  ///
  /// Both must show the same and have one digest, before and after they have met. Then both go on
  /// writing, and must still agree.
  static let changeSets = FuzzTarget(name: "changesets") { bytes in
    var input = FuzzInput(bytes)
    let order = input.byte()
    let writing = input.byte()
    var forged: [ForgedChangeSet] = []
    var weights: [Int: Int] = [:]
    for _ in 0..<12 where !input.isAtEnd {
      let next = ForgedChangeSet(&input)
      // Beyond an author's room the order decides, as it may.
      weights[next.author, default: 0] += next.changeSet.weight
      guard weights[next.author] ?? 0 < FuzzAccount.policy.capacity(factor: Limits.authorFactor)
      else {
        break
      }
      forged.append(next)
    }
    var pair = DevicePair()
    pair.first.take(forged, batched: order & 1 == 0, covered: order & 2 == 0)
    var shuffled = forged
    var random = SeededEntropy(seed: UInt64(order >> 2))
    if order >> 2 == 0 { shuffled.reverse() } else { shuffled.shuffle(using: &random) }
    pair.second.take(
      shuffled + (order & 4 == 0 ? [] : forged), batched: order & 8 == 0, covered: order & 16 == 0)
    pair.check("before they met")
    pair.meet()
    pair.settle()
    pair.check("after they met")
    for number in 0..<Int(writing % 8) {
      pair.write(number, size: Int(writing >> 3) * 40)
    }
    pair.settle()
    pair.check("after they wrote")
    guard writing & 0x80 != 0 else { return }
    pair.first.restart(at: pair.now, process: 9)
    pair.second.restart(at: pair.now, process: 10)
    pair.check("after a restart")
  } seeds: {
    ChangeSetSeeds.all
  }
}

extension FuzzDevice {
  /// Takes change sets in as a member without scruples would pass them on.
  fileprivate mutating func take(
    _ forged: [ForgedChangeSet], batched: Bool, covered: Bool
  ) {
    var session = SessionID(rawValue: 1)
    connect(session)
    var waiting: [ChangeSet] = []
    func deliver(to device: inout FuzzDevice) {
      guard !waiting.isEmpty else { return }
      var covers: [ChainID: UInt64] = [:]
      for set in waiting {
        covers[set.header.chain] = max(
          covers[set.header.chain] ?? 0, min(set.header.sequence, Limits.sequence))
      }
      let batch = Batch(
        store: FuzzAccount.store, changeSets: waiting,
        covers: covered
          ? covers.sorted { $0.key < $1.key }.map { Cover(chain: $0, from: 0, through: $1) } : [])
      for message in batch.messages() {
        guard let inbound = InboundMessage(decoding: message, account: FuzzAccount.shared.id)
        else { fatalError("a batch that nobody reads") }
        device.perform(.received(session, inbound), at: FuzzAccount.start)
        device.checkInvariants()
      }
      waiting = []
    }
    for next in forged {
      // A change set that is ahead ends the connection or waits, and its batch is lost with it.
      if next.isAhead || !batched { deliver(to: &self) }
      waiting.append(next.changeSet)
      if next.isAhead || waiting.count == 3 { deliver(to: &self) }
      // The connection would keep later batches waiting, too.
      if next.isAhead || closed.contains(session) {
        perform(.disconnected(session), at: FuzzAccount.start)
        session = SessionID(rawValue: session.rawValue + 1)
        connect(session)
      }
    }
    deliver(to: &self)
    perform(.disconnected(session), at: FuzzAccount.start)
  }

  private mutating func connect(_ session: SessionID) {
    let other = FuzzDevice.templates[1]
    perform(
      .connected(
        session,
        Self.peer(
          other.replica.keys, hello: other.replica.hello(port: 1, at: FuzzAccount.start),
          isDialled: true)),
      at: FuzzAccount.start)
  }
}
