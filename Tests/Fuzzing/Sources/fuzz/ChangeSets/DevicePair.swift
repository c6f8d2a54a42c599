@testable import KithCrypto

@testable import KithCore

/// Two devices of the account, and the link between them.
struct DevicePair {
  var first = FuzzDevice.templates[0]
  var second = FuzzDevice.templates[3]
  var now = FuzzAccount.start
  private let session = SessionID(rawValue: 1_000)
  private var writes: UInt64 = 0

  /// Promise 1: who has seen the same shows the same.
  mutating func check(_ moment: String) {
    first.checkInvariants()
    second.checkInvariants()
    let store = FuzzAccount.store
    require(
      first.replica.view(of: store) == second.replica.view(of: store), "views differ \(moment)")
    var (one, two) = (first.replica.stores[store], second.replica.stores[store])
    require(one?.digest() == two?.digest(), "digests differ \(moment)")
  }

  mutating func meet() {
    let (one, two) = (first.replica, second.replica)
    first.sent = [:]
    second.sent = [:]
    first.perform(
      .connected(
        session,
        FuzzDevice.peer(two.keys, hello: two.hello(port: 2, at: now), isDialled: true)), at: now)
    second.perform(
      .connected(
        session,
        FuzzDevice.peer(one.keys, hello: one.hello(port: 1, at: now), isDialled: false)), at: now)
  }

  /// Carries messages until none is left, and once more after a full `Have`.
  mutating func settle() {
    for _ in 0..<2 {
      for round in 0... {
        require(round < 300, "messages never end")
        first.flush(at: now)
        second.flush(at: now)
        let moved = carry(from: &first, to: &second)
        guard carry(from: &second, to: &first) || moved else { break }
      }
      now.wallMilliseconds += 31_000
      now.monotonicMilliseconds += 31_000
      first.perform(.tick, at: now)
      second.perform(.tick, at: now)
    }
    require(first.closed.contains(session) == false, "the session was closed")
    require(second.closed.contains(session) == false, "the session was closed")
  }

  private func carry(from sender: inout FuzzDevice, to receiver: inout FuzzDevice) -> Bool {
    let messages = sender.sent.removeValue(forKey: session) ?? []
    for message in messages {
      guard let inbound = InboundMessage(decoding: message, account: FuzzAccount.shared.id) else {
        fatalError("a device sends what nobody reads")
      }
      receiver.perform(.received(session, inbound), at: now)
      receiver.checkInvariants()
    }
    if sender.awaitsDrain.remove(session) != nil { sender.perform(.drained(session), at: now) }
    return !messages.isEmpty
  }

  /// A local transaction of the one or the other, of one or two keys.
  mutating func write(_ number: Int, size: Int) {
    writes += 1
    var operations = [
      Operation(
        key: ForgedChangeSet.keys[number % 6], value: number % 3 == 2 ? nil : text(size, 0x77))
    ]
    if number % 2 == 1 { operations.append(Operation(key: "a", value: text(size / 2, 0x78))) }
    let input = Input.write(WriteID(rawValue: writes), FuzzAccount.store, operations)
    if number & 2 == 0 { first.perform(input, at: now) } else { second.perform(input, at: now) }
    first.checkInvariants()
    second.checkInvariants()
  }
}
