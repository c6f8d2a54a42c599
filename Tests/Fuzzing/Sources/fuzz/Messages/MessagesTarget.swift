@testable import KithCrypto

@testable import KithCore

/// A device in three sessions, two with members and one with a stranger, none of whom keeps the
/// rules.
///
/// An input is a list of steps, each an action in one byte and what it takes:
///
/// | action | takes | does |
/// | --- | --- | --- |
/// | 0, 1, 2 | session, block | a message arrives, as it stands |
/// | 3, 4, 5 | session, block | a message arrives, filled by ``MessageFiller`` |
/// | 6 | two bytes | so many 64 ms pass |
/// | 7 | key, size | the program writes |
/// | 8 | session, byte | the session begins anew |
/// | 9 | session | it ends |
/// | 10 | session, byte | it takes more, or no more for now |
/// | 11 | session, session, byte | what was sent on the one arrives on the other |
/// | 12 | byte | another store is opened |
/// | 13 | | the device is killed and starts again |
/// | 14 | byte | the clock is synchronised, or no longer; refusals are taken |
private struct MessagesRun {
  var device = FuzzDevice.templates[0]
  var now = FuzzAccount.start
  private var sessions: [SessionID?] = [nil, nil, nil]
  private var next: UInt64 = 1
  private var restarts: UInt8 = 1

  init() {
    for slot in 0..<3 { connect(slot, 0) }
  }

  mutating func step(_ input: inout FuzzInput) {
    switch input.number(below: 15) {
    case 0, 1, 2:
      let slot = input.number(below: 3)
      receive(input.block(), on: slot)
    case 3, 4, 5:
      let slot = input.number(below: 3)
      var store = device.replica.stores[FuzzAccount.store]
      let filler = MessageFiller(digest: store?.digest(), vector: store?.log.vector ?? [:])
      guard let message = filler.fill(input.block()) else { return }
      receive(message, on: slot)
    case 6:
      let passed = UInt64(input.uint16()) * 64
      now.wallMilliseconds += passed
      now.monotonicMilliseconds += passed
      device.perform(.tick, at: now)
    case 7: write(&input)
    case 8:
      let slot = input.number(below: 3)
      connect(slot, input.byte())
    case 9: disconnect(input.number(below: 3))
    case 10:
      guard let session = sessions[input.number(below: 3)] else { return }
      device.perform(.writable(session, input.bool()), at: now)
      if input.bool() { device.perform(.drained(session), at: now) }
    case 11:
      guard let source = sessions[input.number(below: 3)], let sent = device.sent[source],
        !sent.isEmpty
      else { return }
      let slot = input.number(below: 3)
      receive(sent[input.number(below: sent.count)], on: slot)
    case 12:
      let byte = input.byte()
      guard let store = StoreIdentifier("store \(byte & 3)") else { return }
      let policy = Policy(totalBytes: Int(byte) * 8, keys: Int(byte >> 4))
      device.perform(.open(byte == 0 ? FuzzAccount.store : store, policy), at: now)
    case 13:
      guard restarts < 4 else { return }
      restarts += 1
      sessions = [nil, nil, nil]
      device.restart(at: now, process: restarts)
    default:
      let byte = input.byte()
      device.perform(.clockStatus(isSynchronised: byte & 1 == 1), at: now)
      device.perform(.takeRefusals(FuzzAccount.store, through: UInt64(byte >> 1)), at: now)
    }
    if input.bool() { device.flush(at: now) }
    for slot in 0..<3 {
      guard let session = sessions[slot], device.closed.contains(session) else { continue }
      disconnect(slot)
    }
    for (session, messages) in device.sent where messages.count > 16 {
      device.sent[session] = Array(messages.suffix(16))
    }
    device.checkInvariants()
  }

  private mutating func receive(_ bytes: [UInt8], on slot: Int) {
    guard let session = sessions[slot] else { return }
    guard let message = InboundMessage(decoding: bytes, account: FuzzAccount.shared.id) else {
      disconnect(slot)
      return
    }
    device.perform(.received(session, message), at: now)
  }

  private mutating func write(_ input: inout FuzzInput) {
    let key = ForgedChangeSet.keys[input.number(below: ForgedChangeSet.keys.count)]
    let size = Int(input.byte())
    var operations = [Operation(key: key, value: size == 0 ? nil : text(size * 8))]
    if size & 1 == 1 { operations.append(Operation(key: "b", value: text(size))) }
    next += 1
    device.perform(.write(WriteID(rawValue: next), FuzzAccount.store, operations), at: now)
  }

  private mutating func connect(_ slot: Int, _ byte: UInt8) {
    disconnect(slot)
    let session = SessionID(rawValue: next)
    next += 1
    let keys = slot == 2 ? FuzzAccount.shared.stranger : FuzzAccount.shared.devices[slot + 1]
    let own = byte & 0x40 == 0 ? keys : FuzzAccount.shared.devices[0]
    let wall = now.wallMilliseconds + (byte & 1 == 0 ? 0 : 100_000)
    let hello = Hello(
      version: 1, clock: HybridTime(milliseconds: wall), isSynchronised: byte & 2 != 0,
      process: ProcessID(process(byte)), rosterDigest: Blake2b.digest256([byte & 4]),
      port: UInt16(byte & 8))
    sessions[slot] = session
    device.perform(
      .connected(
        session,
        FuzzDevice.peer(
          own, hello: hello, isDialled: byte & 16 != 0, isMembershipOnly: byte & 32 != 0)),
      at: now)
  }

  private func process(_ byte: UInt8) -> Digest128 {
    (try? Digest128([UInt8](repeating: byte & 0xc0, count: 16))) ?? { fatalError() }()
  }

  private mutating func disconnect(_ slot: Int) {
    guard let session = sessions[slot] else { return }
    sessions[slot] = nil
    device.sent[session] = nil
    device.perform(.disconnected(session), at: now)
  }
}

extension FuzzTarget {
  /// Messages from peers into the core, between actions of a program and the passing of time.
  ///
  /// After each step the quota holds, the view follows from the changes, nothing is half shown, the
  /// counted weights are those of kept data, and sent data had been committed.
  static let messages = FuzzTarget(name: "messages") { bytes in
    var input = FuzzInput(bytes)
    var run = MessagesRun()
    for _ in 0..<64 where !input.isAtEnd { run.step(&input) }
  } seeds: {
    MessageSeeds.all
  }
}
