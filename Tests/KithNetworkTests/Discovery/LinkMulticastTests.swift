import KithTestSupport
import Logging
import NIOPosix
import Synchronization
import Testing

@testable import KithNetwork

@Suite(.timeLimit(.minutes(2)))
struct LinkMulticastTests {
  /// Datagrams that a ``LinkMulticast`` handed up.
  final class Heard: Sendable {
    private let datagrams = Mutex<[LinkMulticast.Datagram]>([])
    var all: [LinkMulticast.Datagram] { datagrams.withLock { $0 } }
    func add(_ datagram: LinkMulticast.Datagram) { datagrams.withLock { $0.append(datagram) } }
  }

  /// On loopback only, and at a port of its own: nothing leaves the host, and no other test hears it.
  private func make(port: UInt16, bytes: Int = 160) -> LinkMulticast {
    var logger = Logger(label: "test")
    logger.logLevel = .error
    return LinkMulticast(
      port: port, datagramBytes: bytes, isLoopbackOnly: true, scanInterval: .milliseconds(50),
      logger: logger)
  }

  private func started(_ link: LinkMulticast) async throws -> Heard {
    let heard = Heard()
    link.start(onDatagram: { heard.add($0) })
    try await eventually("the link works") { link.links.contains { $0.problem == nil } }
    return heard
  }

  @Test func allOfOneHostHearADatagramAndItsSender() async throws {
    let port = UInt16.random(in: 20_000...30_000)
    let links = [make(port: port), make(port: port), make(port: port)]
    var heard: [Heard] = []
    for link in links { heard.append(try await started(link)) }
    #expect(
      links[0].links == [.init(interface: "lo", isLoopback: true, family: "IPv4")])
    let bytes = [UInt8](repeating: 7, count: 160)
    links[0].send(bytes)
    try await eventually("all heard it") { heard.allSatisfy { !$0.all.isEmpty } }
    for each in heard {
      #expect(each.all == [.init(bytes: bytes, source: "127.0.0.1", interface: "lo")])
    }
    for link in links { await link.stop() }
  }

  @Test func otherSizesAreDropped() async throws {
    let port = UInt16.random(in: 20_000...30_000)
    let (link, short, long) = (
      make(port: port), make(port: port, bytes: 159), make(port: port, bytes: 5000)
    )
    let heard = try await started(link)
    for other in [short, long] { _ = try await started(other) }
    short.send([UInt8](repeating: 1, count: 159))
    long.send([UInt8](repeating: 2, count: 5000))
    link.send([UInt8](repeating: 3, count: 160))
    try await eventually("the right one came") { !heard.all.isEmpty }
    #expect(heard.all.map(\.bytes.first) == [3])
    for link in [link, short, long] { await link.stop() }
  }

  @Test func aFloodIsCut() async throws {
    let port = UInt16.random(in: 20_000...30_000)
    let link = make(port: port)
    let heard = try await started(link)
    let bytes = [UInt8](repeating: 0, count: 160)
    let (begun, clock) = (ContinuousClock.now, ContinuousClock())
    let sent = Mutex(0)
    try await eventually("more was sent than is handed up") {
      for _ in 0..<20 { link.send(bytes) }
      return sent.withLock { sent in
        sent += 20
        return sent > 5000 && heard.all.count >= NetworkLimits.datagramsPerSecond
      }
    }
    let seconds = Double((clock.now - begun) / .seconds(1))
    #expect(heard.all.count <= Int(Double(NetworkLimits.datagramsPerSecond) * (1 + seconds)) + 1)
    await link.stop()
  }

  @Test func itCanBeStartedAgain() async throws {
    let link = make(port: UInt16.random(in: 20_000...30_000))
    for number in UInt8(1)...3 {
      let heard = try await started(link)
      link.send([UInt8](repeating: number, count: 160))
      try await eventually("it came") { heard.all.map(\.bytes.first) == [number] }
      await link.stop()
      link.send([UInt8](repeating: 9, count: 160))
      #expect(link.links.isEmpty)
      #expect(heard.all.count == 1)
    }
  }

  @Test func onlySourcesOfTheLinkCount() {
    let interface = LinkInterface(
      index: 2, name: "eth0", isLoopback: false, supportsMulticast: true,
      subnets: [
        .init(address: [192, 0, 2, 5], mask: [255, 255, 254, 0]),
        .init(
          address: [0x20, 1, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [1],
          mask: [UInt8](repeating: 255, count: 8) + [UInt8](repeating: 0, count: 8)),
      ])
    for (source, isOnLink) in [
      ([192, 0, 2, 9], true), ([192, 0, 3, 9], true), ([192, 0, 4, 9], false),
      ([127, 0, 0, 1], false),
      ([169, 254, 7, 7], true),
      ([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9], true),
      ([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9], false),
      ([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9], true),
      ([], false),
    ] as [([UInt8], Bool)] {
      #expect(interface.isOnLink(source) == isOnLink, "\(source)")
    }
    // IPv6 groups are of the link alone, and need a link-local address.
    #expect(interface.families == [.ipv4])
  }
}
