import KithCrypto
import Testing

@testable import KithCore

/// How words spread over sessions.
@Suite struct SpreadingTests: CoverageSuite {
  /// Devices with sessions between some of them; what they send arrives at once.
  private struct Net {
    var devices: [Coverage]
    var edges: [SessionID: (Int, Int)] = [:]
    var delivered = 0
    /// A session whose messages are lost.
    var lost: SessionID?

    mutating func connect(_ a: Int, _ b: Int) {
      let session = SessionID(rawValue: UInt64(edges.count + 1))
      edges[session] = (a, b)
      for (index, other) in [(a, b), (b, a)] {
        devices[index].begin(
          session, with: devices[other].device, process: devices[other].process, isMember: true)
      }
    }
  }

  private func pass(_ net: inout Net, from start: UInt64, until end: UInt64) {
    for now in stride(from: start, to: end, by: 10) {
      for index in net.devices.indices {
        if net.devices[index].needsTime(at: now) {
          net.devices[index].setTime(at: now, jitter: UInt64(index * 37 % 256))
        }
        guard let due = net.devices[index].dueAt, due <= now else { continue }
        let outbound = net.devices[index].passOnWords(
          at: instant(now, wall: now), canSend: { _ in true }, stores: [store], own: { _ in own(9) }
        ).outbound
        for telling in outbound where telling.session != net.lost {
          deliver(telling, from: index, &net, now)
        }
      }
    }
  }

  private func deliver(
    _ telling: Coverage.OutboundWords, from index: Int, _ net: inout Net, _ now: UInt64
  ) {
    guard let (a, b) = net.edges[telling.session] else { return }
    net.delivered += telling.words.reduce(0) { $0 + $1.said.count }
    let isSound = net.devices[index == a ? b : a].receive(
      telling.words, on: telling.session, at: now, with: nil)
    #expect(isSound)
  }

  @Test func `words come to each device, over whatever sessions there are, and then nothing does`()
  {
    let shapes: [(String, [(Int, Int)], most: Int)] = [
      ("two", [(0, 1)], 2),
      ("a line", (1..<8).map { ($0 - 1, $0) }, 8 * 7),
      ("a star", (1..<12).map { (0, $0) }, 12 * 11),
      ("a ring", (0..<8).map { ($0, ($0 + 1) % 8) }, 8 * 9),
      ("all with all", (0..<8).flatMap { a in (a + 1..<8).map { (a, $0) } }, 8 * 2 * 28),
    ]
    for (name, shape, most) in shapes {
      let count = (shape.map { max($0.0, $0.1) }.max() ?? 0) + 1
      var net = Net(devices: (0..<count).map { coverage(of: $0, among: count) })
      for (a, b) in shape { net.connect(a, b) }
      pass(&net, from: 0, until: 20_000)
      for device in net.devices {
        #expect(device.words.count == count, "\(name)")
        #expect(
          keys.prefix(count).allSatisfy { key in
            key.id == device.device || device.covers([chain: 9], of: store, key.id)
          }, "\(name)")
      }
      #expect(Set(net.devices.map(\.digest)).count == 1, "\(name)")
      // Of a word one copy crosses each session of a tree; elsewhere two may meet on their way.
      let delivered = net.delivered
      #expect(delivered <= most, "\(name)")
      pass(&net, from: 20_000, until: 40_000)
      #expect(net.delivered == delivered, "\(name): nothing changed")
    }
  }

  @Test func `a session that is full gets its words later`() {
    var coverage = coverage(of: 0, among: 2)
    coverage.begin(session, with: keys[1].id, process: 5, isMember: true)
    func told(canSend: Bool) -> Int {
      coverage.setTime(at: 0, jitter: 0)
      return coverage.passOnWords(
        at: instant(1_000), canSend: { _ in canSend }, stores: [store], own: { _ in own(9) }
      ).outbound.count
    }
    #expect(told(canSend: false) == 0)
    #expect(coverage.needsTime(at: 1_000))
    #expect(told(canSend: true) == 1)
    #expect(!coverage.needsTime(at: 1_000))
    #expect(told(canSend: true) == 0)
  }

  @Test func `a peer that lost words is sent all again, unless some are under way`() {
    var net = Net(devices: (0..<3).map { coverage(of: $0, among: 3) })
    net.connect(0, 1)
    net.connect(1, 2)
    net.lost = SessionID(rawValue: 1)
    pass(&net, from: 0, until: 5_000)
    net.lost = nil
    pass(&net, from: 5_000, until: 10_000)
    #expect(net.devices[0].words.count == 1)
    func have(from index: Int, to other: Int, at now: UInt64) {
      let digest = net.devices[index].digest
      let isSound = net.devices[other].receive([], digest: digest, on: session, at: now, with: nil)
      #expect(isSound)
    }
    let last = net.devices[1].peers[session]?.movedAt ?? 0
    have(from: 0, to: 1, at: last + Limits.wordQuietMilliseconds)
    pass(&net, from: 10_000, until: 11_000)
    #expect(net.devices[0].words.count == 1)
    have(from: 0, to: 1, at: 11_000)
    have(from: 1, to: 0, at: 11_000)
    pass(&net, from: 11_000, until: 12_000)
    #expect(net.devices.map(\.words.count) == [3, 3, 3])
    let delivered = net.delivered
    have(from: 0, to: 1, at: 20_000)
    pass(&net, from: 20_000, until: 21_000)
    #expect(net.delivered == delivered, "both keep the same")
  }

  @Test func `a process is not sent its own word`() {
    var coverage = coverage(of: 0, among: 2)
    #expect(receive([word(3, process: 5, number: 1)], &coverage))
    for (process, wanted) in [(5, [0]), (6, [0, 1])] as [(UInt64, [Int])] {
      let session = SessionID(rawValue: process)
      coverage.begin(session, with: keys[1].id, process: process, isMember: true)
      coverage.setTime(at: 0, jitter: 0)
      let told = coverage.passOnWords(
        at: instant(1_000), canSend: { $0 == session }, stores: [store], own: { _ in own(9) }
      ).outbound.flatMap(\.words).flatMap(\.said).map(\.device)
      #expect(Set(told) == Set(wanted.map { keys[$0].id.shortName }))
    }
  }
}
