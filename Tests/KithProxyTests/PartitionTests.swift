import KithProxy
import KithTestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct PartitionTests {
  @Test func `a stalled direction hides bytes, ends and new connections, and loses nothing`()
    async throws
  {
    try await ProxyPair.with { pair in
      pair.proxy.set(.init(isStalled: true), direction: .forward)
      pair.client.send([1, 2])
      pair.client.finish()
      pair.target.send([3])
      try await pair.client.awaitBytes(1)
      let other = try TestSocket.connect(pair.proxy.port)
      other.send([4])
      // Bytes that pass the other way have gone through the proxy after the bytes that it holds.
      pair.target.send([5])
      try await pair.client.awaitBytes(2)
      pair.target.look()
      #expect(pair.target.received.isEmpty && pair.target.end == nil)
      #expect(pair.listener.accept() == nil)
      #expect(pair.proxy.counters.forwardBytes == 0)
      pair.proxy.mend()
      #expect(try await pair.target.awaitEnd() == .closed)
      #expect(pair.target.received == [1, 2])
      var third: TestSocket?
      try await eventually("the connection that waited") {
        third = pair.listener.accept()
        return third != nil
      }
      try await third?.awaitBytes(1)
    }
  }

  @Test func `a sender into a stalled direction has to wait`() async throws {
    var configuration = FaultyProxy.Configuration()
    configuration.heldBytesLimit = 100_000
    try await ProxyPair.with(configuration, faults: .init(isStalled: false)) { pair in
      pair.proxy.set(.init(isStalled: true), direction: .forward)
      let piece = pattern(65_536)
      var sent: [UInt8] = []
      var fullSince = ContinuousClock.now
      // Until the kernel has taken nothing for a while: its buffers are full, and the proxy's.
      try await eventually("the sender to be held up") {
        let count = pair.client.send(piece)
        sent += piece.prefix(count)
        if count > 0 { fullSince = .now }
        return ContinuousClock.now - fullSince > .milliseconds(300)
      }
      // The bound: the buffers of two sockets in the kernel, and a little of the proxy.
      #expect(sent.count < 32 << 20)
      #expect(pair.proxy.counters.forwardBytes == 0)
      pair.proxy.mend()
      try await pair.target.awaitBytes(sent.count)
      #expect(pair.target.received == sent)
    }
  }

  @Test func `a cut resets everything until it is mended`() async throws {
    try await ProxyPair.with { pair in
      pair.proxy.set(.init(isStalled: true))
      pair.proxy.cut()
      #expect(try await pair.client.awaitEnd() == .reset)
      #expect(try await pair.target.awaitEnd() == .reset)
      let refused = try TestSocket.connect(pair.proxy.port)
      #expect(try await refused.awaitEnd() == .reset)
      #expect(pair.listener.accept() == nil)
      #expect(pair.proxy.counters.refused == 1 && pair.proxy.counters.reset == 1)
      pair.proxy.mend()
      let (client, target) = try await pair.connect()
      client.send([1])
      try await target.awaitBytes(1)
    }
  }

  @Test func `of an abandoned connection neither side ever learns`() async throws {
    try await ProxyPair.with { pair in
      pair.proxy.abandon()
      pair.client.send([1])
      pair.target.send([2])
      // Nothing that is done to the proxy, or by the other side, shows.
      pair.proxy.cut()
      pair.proxy.mend()
      let (client, target) = try await pair.connect()
      client.send([3])
      try await target.awaitBytes(1)
      client.finish()
      #expect(try await target.awaitEnd() == .closed)
      pair.client.look()
      #expect(pair.client.received.isEmpty && pair.client.end == nil)
      pair.client.close()
      let (last, lastTarget) = try await pair.connect()
      last.send([4])
      try await lastTarget.awaitBytes(1)
      pair.target.look()
      #expect(pair.target.received.isEmpty && pair.target.end == nil)
    }
  }

  @Test func `connections over the limit are reset`() async throws {
    var configuration = FaultyProxy.Configuration()
    configuration.connectionLimit = 1
    try await ProxyPair.with(configuration) { pair in
      let second = try TestSocket.connect(pair.proxy.port)
      #expect(try await second.awaitEnd() == .reset)
      #expect(pair.proxy.counters.refused == 1)
      pair.client.send([1])
      try await pair.target.awaitBytes(1)
    }
  }
}
