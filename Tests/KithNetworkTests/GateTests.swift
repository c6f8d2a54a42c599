import KithCrypto
import NIOCore
import NIOEmbedded
import Testing

@testable import KithNetwork

struct GateTests {
  func bucket(_ number: Int) throws -> AddressBucket {
    AddressBucket(try SocketAddress(ipAddress: "192.0.2.\(number)", port: 1))
  }

  @Test func oldestWithoutAValidMessageMakesWay() throws {
    var table = HalfOpenTable(limit: 4, limitPerAddress: 2)
    #expect(table.admit(1, from: try bucket(1)) == .admitted)
    #expect(table.admit(2, from: try bucket(1)) == .admitted)
    table.markValid(1)
    #expect(table.admit(3, from: try bucket(1)) == .admittedInsteadOf(2))
    table.markValid(3)
    #expect(table.admit(5, from: try bucket(2)) == .admitted)
    #expect(table.admit(6, from: try bucket(3)) == .admitted)
    #expect(table.admit(7, from: try bucket(4)) == .admittedInsteadOf(5))
    table.remove(1)
    #expect(table.admit(8, from: try bucket(1)) == .admitted)
    #expect(table.count == 4)
  }

  /// A member, or a revoked device with an old key, kept all others out for as long as it went on.
  @Test func validFirstMessagesFillThePlacesForNobodyElse() throws {
    var table = HalfOpenTable(limit: 16, limitPerAddress: 8)
    // One waits for its message 3, another has just connected.
    for id in 1...2 as ClosedRange<UInt64> {
      #expect(table.admit(id, from: try bucket(Int(id))) == .admitted)
    }
    table.markValid(1)
    var id: UInt64 = 10
    for _ in 0..<100 {
      for number in 100..<110 {
        id += 1
        let admission = table.admit(id, from: try bucket(number))
        #expect(![.admittedInsteadOf(1), .admittedInsteadOf(2)].contains(admission))
        table.markValid(id)
      }
    }
    #expect(table.count == 16)
    let late = table.admit(3, from: try bucket(3))
    #expect(late != .admitted)
    table.markValid(2)
    table.markValid(3)
    for number in 100..<110 {
      id += 1
      let admission = table.admit(id, from: try bucket(number))
      #expect(!(1...3).contains { admission == .admittedInsteadOf($0) })
    }
  }

  /// At the same address the newest has a place, until so many others came.
  @Test func validFirstMessagesOfOneAddressMakeWayForTheNewest() throws {
    var table = HalfOpenTable(limit: 16, limitPerAddress: 8)
    for id in 1...8 as ClosedRange<UInt64> {
      #expect(table.admit(id, from: try bucket(1)) == .admitted)
      table.markValid(id)
    }
    for id in 9...15 as ClosedRange<UInt64> {
      #expect(table.admit(id, from: try bucket(1)) == .admittedInsteadOf(id - 8))
      table.markValid(id)
    }
    #expect(table.count == 8)
  }

  /// One address that is full pushes out its own connections, never another's.
  @Test func fullAddressTakesNothingFromOthers() throws {
    var table = HalfOpenTable(limit: 8, limitPerAddress: 2)
    #expect(table.admit(1, from: try bucket(1)) == .admitted)
    #expect(table.admit(2, from: try bucket(2)) == .admitted)
    #expect(table.admit(3, from: try bucket(2)) == .admitted)
    // The other's is the oldest.
    #expect(table.admit(4, from: try bucket(2)) == .admittedInsteadOf(2))
    table.markValid(3)
    table.markValid(4)
    #expect(table.admit(5, from: try bucket(2)) == .admittedInsteadOf(3))
    #expect(table.count == 3)
    #expect(table.admit(6, from: try bucket(1)) == .admitted)
    #expect(table.admit(7, from: try bucket(1)) == .admittedInsteadOf(1))
  }

  /// A copied first message proves nothing: its connection is still closed first if others need its
  /// place.
  @Test func replayedFirstMessageDoesNotKeepItsPlace() throws {
    var entropy = SeededEntropy(seed: 1)
    let ephemeral = entropy.draw(TransportPublicKey.self)
    let gate = Gate(limit: 2, limitPerAddress: 2)
    let channels = (0..<3).map { _ in EmbeddedChannel() }
    let first = gate.admit(channels[0])
    let second = gate.admit(channels[1])
    #expect(gate.accept(first.id, ephemeral: ephemeral))
    #expect(!gate.accept(second.id, ephemeral: ephemeral))
    let third = gate.admit(channels[2])
    #expect(third.evicted)
    channels[1].embeddedEventLoop.run()
    #expect(throws: Never.self) { try channels[1].closeFuture.wait() }
    #expect(gate.halfOpen == 2)
    _ = try? channels[0].finish()
    _ = try? channels[2].finish()
  }

  /// A connection that is closed before it became active is told to no handler.
  @Test func placeIsGivenBackWhoeverClosesTheConnection() throws {
    let gate = Gate(limit: 4, limitPerAddress: 4)
    let channel = EmbeddedChannel()
    _ = gate.admit(channel)
    #expect(gate.halfOpen == 1)
    channel.close(promise: nil)
    channel.embeddedEventLoop.run()
    #expect(gate.halfOpen == 0)
  }

  @Test func answeredEphemeralsAreForgottenInTurn() {
    var entropy = SeededEntropy(seed: 1)
    let keys = (0..<9).map { _ in entropy.draw(TransportPublicKey.self) }
    var answered = AnsweredEphemerals(limit: 8)
    let first = keys.prefix(8).map { answered.insert($0) }
    let again = keys.prefix(8).map { answered.insert($0) }
    #expect(first.allSatisfy { $0 } && again.allSatisfy { !$0 })
    let later = [8, 1, 0].map { answered.insert(keys[$0]) }
    #expect(later == [true, false, true])
  }

  final class Owner: ListenerHandshakeOwner {
    var failures = 0
    func presharedKeys() -> [SharedPresharedKey] { [psk(1)] }
    func reply(to offer: [UInt8]) -> [UInt8]? { [1] }
    func accepts(ephemeral: TransportPublicKey) -> Bool { true }
    func finished(
      _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
    ) -> SessionHandler? { nil }
    func failed(_ failure: ListenerHandshakeFailure) { failures += 1 }
  }

  private static var parameters: NoiseParameters {
    NoiseParameters(
      prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(1),
      entropy: SharedEntropy(SeededEntropy(seed: 1)))
  }

  /// An accepted connection in virtual time.
  private func listening(_ owner: Owner) throws -> EmbeddedChannel {
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(
      ListenerHandshakeHandler(parameters: Self.parameters, owner: owner, timeout: .seconds(5)))
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
    return channel
  }

  /// Virtual time: no byte back, open until the deadline, closed then.
  @Test(arguments: [0, 1, 100, 1024, 1025, 200_000])
  func strangerSeesSilenceUntilTheDeadline(byteCount: Int) throws {
    let owner = Owner()
    let channel = try listening(owner)
    var left = byteCount
    while left > 0 {
      let count = min(left, 1024)
      try channel.writeInbound(ByteBuffer(repeating: 1, count: count))
      left -= count
    }
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(4999))
    #expect(channel.isActive)
    #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
    #expect(!channel.isActive)
    #expect(owner.failures == 1)
  }

  /// Virtual time: a dialler that has the key and sends message 1 late gets no extra time for
  /// message 3.
  @Test func deadlineCountsFromAcceptingAlsoAfterMessageOne() throws {
    let owner = Owner()
    let channel = try listening(owner)
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(4_000))
    try channel.writeInbound(ByteBuffer(bytes: try firstMessage(psk(1))))
    #expect(try channel.readOutbound(as: ByteBuffer.self) != nil)
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(999))
    #expect(channel.isActive && owner.failures == 0)
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
    #expect(!channel.isActive)
    #expect(owner.failures == 1)
  }

  /// A connection that ended before the handler was there tells it nothing but its removal: the dial
  /// must not count as under way for ever.
  @Test func diallerIsToldWhereItsHandlerIsRemoved() throws {
    final class Caller: DiallerHandshakeOwner {
      var failures = 0
      func offer() -> [UInt8] { [] }
      func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8] { [] }
      func finished(_ exchange: NoiseExchange) -> SessionHandler? { nil }
      func failed(_ error: (any Error)?) { failures += 1 }
    }
    let caller = Caller()
    let channel = EmbeddedChannel()
    let handler = DiallerHandshakeHandler(
      exchange: try Self.parameters.start(.initiator, psk: psk(1)), owner: caller,
      timeout: .seconds(5))
    try channel.pipeline.syncOperations.addHandler(handler)
    #expect(caller.failures == 0)
    channel.pipeline.syncOperations.removeHandler(handler, promise: nil)
    channel.embeddedEventLoop.run()
    #expect(caller.failures == 1)
    channel.embeddedEventLoop.advanceTime(by: .seconds(6))
    #expect(caller.failures == 1)
    _ = try? channel.finish()
  }

  @Test func validFirstMessageIsAnsweredOnceAndBytesAreBounded() throws {
    let owner = Owner()
    let channel = try listening(owner)
    try channel.writeInbound(ByteBuffer(bytes: try firstMessage(psk(1))))
    #expect(try channel.readOutbound(as: ByteBuffer.self) != nil)
    #expect(owner.failures == 0)
    try channel.writeInbound(ByteBuffer(bytes: [3, 255] + [UInt8](repeating: 0, count: 900)))
    #expect(owner.failures == 1)
    try channel.writeInbound(ByteBuffer(bytes: try firstMessage(psk(1))))
    #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
    _ = try channel.finish()
  }
}
