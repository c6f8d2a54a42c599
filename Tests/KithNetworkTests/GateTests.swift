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
    #expect(table.admit(4, from: try bucket(1)) == .refused)
    #expect(table.admit(5, from: try bucket(2)) == .admitted)
    #expect(table.admit(6, from: try bucket(3)) == .admitted)
    #expect(table.admit(7, from: try bucket(4)) == .admittedInsteadOf(5))
    table.remove(1)
    #expect(table.admit(8, from: try bucket(1)) == .admitted)
    #expect(table.count == 4)
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
    var isClosed = false
    func presharedKeys() -> [SharedPresharedKey] { [psk(1)] }
    func reply(to offer: [UInt8]) -> [UInt8]? { [1] }
    func accepts(ephemeral: TransportPublicKey) -> Bool { true }
    func finished(
      _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
    ) -> SessionHandler? { nil }
    func failed(_ failure: ListenerHandshakeFailure) { failures += 1 }
    func closed() { isClosed = true }
  }

  /// Virtual time: no byte back, open until the deadline, closed then.
  @Test(arguments: [0, 1, 100, 1024, 1025, 200_000])
  func strangerSeesSilenceUntilTheDeadline(byteCount: Int) throws {
    let owner = Owner()
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(
      ListenerHandshakeHandler(
        parameters: NoiseParameters(
          prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(1),
          entropy: SharedEntropy(SeededEntropy(seed: 1))),
        owner: owner, timeout: .seconds(5)))
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
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
    #expect(owner.isClosed)
    #expect(owner.failures == 1)
  }

  @Test func validFirstMessageIsAnsweredOnceAndBytesAreBounded() throws {
    let owner = Owner()
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandler(
      ListenerHandshakeHandler(
        parameters: NoiseParameters(
          prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(1),
          entropy: SharedEntropy(SeededEntropy(seed: 1))),
        owner: owner, timeout: .seconds(5)))
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
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
