import KithTestSupport
import NIOCore
import Testing

@testable import KithProxy

@Suite(.timeLimit(.minutes(2))) struct FaultyProxyTests {
  @Test func `without faults all passes, ends too, and is counted and recorded`() async throws {
    var configuration = FaultyProxy.Configuration()
    configuration.recordingLimitBytes = 250_000
    try await ProxyPair.with(configuration) { pair in
      let bytes = pattern(300_000)
      try await pair.client.sendAll(bytes, whileReading: pair.target)
      try await pair.target.awaitBytes(bytes.count)
      #expect(pair.target.received == bytes)
      pair.client.finish()
      #expect(try await pair.target.awaitEnd() == .closed)
      // The other direction is still open.
      pair.target.send([1, 2, 3])
      try await pair.client.awaitBytes(3)
      #expect(pair.client.received == [1, 2, 3])
      pair.target.close()
      #expect(try await pair.client.awaitEnd() == .closed)
      #expect(pair.proxy.recorded(.forward) == Array(bytes.prefix(250_000)))
      #expect(pair.proxy.recorded(.backward) == [1, 2, 3])
      #expect(pair.proxy.recorded(.both).count == 250_003)
      try await eventually("the connection to be over") { pair.proxy.counters.open == 0 }
      let counters = pair.proxy.counters
      #expect(counters.accepted == 1 && counters.reset == 0 && counters.corruptedBytes == 0)
      #expect(counters.forwardBytes == 300_000 && counters.backwardBytes == 3)
    }
  }

  @Test func `a delay holds bytes back, and not one after another`() async throws {
    let delay = Duration.seconds(1)
    try await ProxyPair.with(faults: .init(delay: delay)) { pair in
      let began = ContinuousClock.now
      for number in 0..<40 as Range<UInt8> {
        pair.client.send([number])
        try await Task.sleep(for: .milliseconds(2))
      }
      let sent = ContinuousClock.now
      try await pair.target.awaitBytes(40)
      let after = ContinuousClock.now - began
      #expect(pair.target.received == Array(0..<40))
      #expect(after >= delay)
      #expect(ContinuousClock.now - sent < delay * 20)
      // Once mended, what is held passes at once.
      pair.proxy.set(.init(delay: .seconds(3_600)))
      pair.client.send([40])
      pair.target.send([41])
      pair.proxy.mend()
      try await pair.target.awaitBytes(41)
      try await pair.client.awaitBytes(1)
    }
  }

  @Test func `a throttle lets so many bytes a second pass`() async throws {
    try await ProxyPair.with(faults: .init(bytesPerSecond: 100_000)) { pair in
      let began = ContinuousClock.now
      let bytes = pattern(50_000)
      try await pair.client.sendAll(bytes, whileReading: pair.target)
      try await pair.target.awaitBytes(bytes.count)
      // The first piece and the last do not wait.
      #expect(ContinuousClock.now - began >= .milliseconds(440))
      #expect(pair.target.received == bytes)
    }
  }

  @Test func `bytes are corrupted where the seed says, in one direction`() async throws {
    func altered(seed: UInt64) async throws -> [Int] {
      var configuration = FaultyProxy.Configuration()
      configuration.seed = seed
      let bytes = pattern(100_000)
      var positions: [Int] = []
      try await ProxyPair.with(configuration) { pair in
        pair.proxy.set(.init(corruption: .chance(0.0005)), direction: .backward)
        try await pair.target.sendAll(bytes, whileReading: pair.client)
        try await pair.client.awaitBytes(bytes.count)
        try await pair.client.sendAll(bytes, whileReading: pair.target)
        try await pair.target.awaitBytes(bytes.count)
        #expect(pair.target.received == bytes)
        positions = bytes.indices.filter { pair.client.received[$0] != bytes[$0] }
        #expect(pair.proxy.counters.corruptedBytes == positions.count)
      }
      return positions
    }
    let first = try await altered(seed: 1)
    #expect((20...90).contains(first.count))
    #expect(try await altered(seed: 1) == first)
    #expect(try await altered(seed: 2) != first)
  }

  @Test func `a loss resets both sides`() async throws {
    try await ProxyPair.with { pair in
      pair.proxy.set(.init(resets: .every(1_000)), direction: .forward)
      pair.client.send(pattern(999))
      try await pair.target.awaitBytes(999)
      pair.client.send(pattern(10))
      #expect(try await pair.client.awaitEnd() == .reset)
      #expect(try await pair.target.awaitEnd() == .reset)
      #expect(pair.target.received == pattern(999))
      #expect(pair.proxy.counters.reset == 1)
      let (client, target) = try await pair.connect()
      client.send([7])
      try await target.awaitBytes(1)
    }
  }

  @Test func `the end of a failed connection is a reset on the other side`() async throws {
    try await ProxyPair.with { pair in
      let another = try await pair.connect()
      try await FaultyProxy.with(target: pair.proxy.port) { front in
        let client = try TestSocket.connect(front.port)
        client.send([1])
        var target: TestSocket?
        try await eventually("the target") {
          target = pair.listener.accept()
          return target != nil
        }
        try await target?.awaitBytes(1)
        front.reset()
        #expect(try await target?.awaitEnd() == .reset)
        #expect(try await client.awaitEnd() == .reset)
      }
      another.client.send([1])
      try await another.target.awaitBytes(1)
    }
  }

  @Test func `a target that is away resets whoever connects`() async throws {
    let (listener, port) = try TestSocket.listen()
    listener.close()
    try await FaultyProxy.with(target: port) { proxy in
      let client = try TestSocket.connect(proxy.port)
      #expect(try await client.awaitEnd() == .reset)
      try await eventually("the connection to be over") { proxy.counters.open == 0 }
    }
  }

  @Test func `it does not begin where it cannot`() async throws {
    let (listener, port) = try TestSocket.listen()
    var taken = FaultyProxy.Configuration()
    taken.port = port
    await #expect(throws: FaultyProxyError.self) {
      try await FaultyProxy.with(target: 1, configuration: taken) { _ in }
    }
    var unbounded = FaultyProxy.Configuration()
    unbounded.heldBytesLimit = 0
    let error = await #expect(throws: FaultyProxyError.self) {
      try await FaultyProxy.with(target: 1, configuration: unbounded) { _ in }
    }
    #expect(error?.code == .invalidConfiguration)
    _ = listener
  }

  @Test func `its end closes everything, whatever waits`() async throws {
    struct Expected: Error {}
    let (listener, port) = try TestSocket.listen()
    var sockets: [TestSocket] = []
    var proxyPort = 0
    await #expect(throws: Expected.self) {
      try await FaultyProxy.with(target: port) { proxy in
        proxyPort = proxy.port
        sockets.append(try TestSocket.connect(proxy.port))
        try await eventually("the target") {
          listener.accept().map { sockets.append($0) } != nil
        }
        proxy.set(.init(delay: .seconds(3_600), isStalled: true))
        sockets[0].send([1])
        sockets.append(try TestSocket.connect(proxy.port))
        proxy.abandon()
        throw Expected()
      }
    }
    for socket in sockets { #expect(try await socket.awaitEnd() != nil) }
    #expect(throws: TestSocket.Refused.self) { try TestSocket.connect(proxyPort) }
  }
}

@Suite struct ByteFaultsTests {
  /// The positions of altered bytes, and the position of the reset, in bytes cut in pieces.
  private func run(
    _ faults: FaultyProxy.Faults, seed: UInt64, pieces: [Int]
  ) -> (altered: [Int], reset: Int?) {
    var byteFaults = ByteFaults(seed: seed)
    byteFaults.set(faults)
    var position = 0
    var altered: [Int] = []
    for piece in pieces {
      var bytes = ByteBuffer(repeating: 0, count: piece)
      let outcome = byteFaults.apply(to: &bytes)
      let passing = outcome.resetAfter ?? piece
      let changed = bytes.readableBytesView.prefix(passing).enumerated().filter { $1 != 0 }
      #expect(changed.allSatisfy { $0.element.nonzeroBitCount == 1 })
      #expect(changed.count == outcome.corrupted)
      altered += changed.map { position + $0.offset }
      if let reset = outcome.resetAfter { return (altered, position + reset) }
      position += piece
    }
    return (altered, nil)
  }

  @Test func `how bytes are cut does not matter`() {
    let faults = FaultyProxy.Faults(corruption: .chance(0.01), resets: .chance(0.0002))
    for seed in 0..<50 as Range<UInt64> {
      let whole = run(faults, seed: seed, pieces: [10_000])
      let cut = run(faults, seed: seed, pieces: Array(repeating: 7, count: 1_429))
      #expect(whole.altered.filter { $0 < 9_990 } == cut.altered.filter { $0 < 9_990 })
      if let reset = whole.reset, reset < 9_990 { #expect(cut.reset == reset) }
    }
  }

  @Test func `every n-th byte is the n-th, the 2n-th and so on`() {
    let faults = FaultyProxy.Faults(corruption: .every(10))
    #expect(run(faults, seed: 1, pieces: [3, 4, 28]).altered == [9, 19, 29])
    #expect(run(.init(resets: .every(10)), seed: 1, pieces: [3, 4, 28]).reset == 9)
    #expect(run(.init(corruption: .every(0)), seed: 1, pieces: [3]).altered == [0, 1, 2])
  }

  @Test func `chances are kept, and at their ends certain`() {
    let some = run(.init(corruption: .chance(0.02)), seed: 5, pieces: [100_000]).altered
    #expect((1_700...2_300).contains(some.count))
    #expect(run(.init(corruption: .chance(0)), seed: 5, pieces: [1_000]).altered.isEmpty)
    #expect(run(.init(corruption: .chance(.nan)), seed: 5, pieces: [1_000]).altered.isEmpty)
    #expect(run(.init(corruption: .chance(7)), seed: 5, pieces: [1_000]).altered.count == 1_000)
  }

  @Test func `a fault that is set anew goes on from where the bytes are`() {
    var byteFaults = ByteFaults(seed: 3)
    var bytes = ByteBuffer(repeating: 0, count: 25)
    #expect(byteFaults.apply(to: &bytes).corrupted == 0)
    byteFaults.set(.init(corruption: .every(10)))
    var more = ByteBuffer(repeating: 0, count: 10)
    _ = byteFaults.apply(to: &more)
    #expect(more.readableBytesView.firstIndex { $0 != 0 } == 4)
    byteFaults.set(.none)
    var last = ByteBuffer(repeating: 0, count: 100)
    #expect(byteFaults.apply(to: &last).corrupted == 0)
  }
}
