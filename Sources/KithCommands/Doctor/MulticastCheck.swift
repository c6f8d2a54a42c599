import Glibc
import Kith
import KithCrypto
import KithNetwork
import KithTerminal
import Logging
import Synchronization

struct MulticastCheck: Check {
  static let name = "multicast"

  /// A separate port, so that no node takes a datagram for a beacon.
  private static let port: UInt16 = 41_140
  /// Random, so that only this process's own datagrams count.
  private static let datagramBytes = 32
  /// The longest wait for all links.
  private static let longestWait = Duration.milliseconds(1_500)
  private static let intervalMicroseconds: UInt32 = 50_000

  struct Link: Equatable, Sendable {
    var link: NodeStatus.Discovery.Link
    /// Whether a datagram sent on it was received there.
    var isHeard: Bool
  }

  func look(at target: DiagnosisTarget) async -> [Link] {
    var logger = Logger(label: "kith")
    logger.logLevel = .critical
    let multicast = LinkMulticast(
      port: Self.port, datagramBytes: Self.datagramBytes, scanInterval: .milliseconds(500),
      logger: logger)
    var random = SystemRandom()
    let token = random.draw(Digest256.self).bytes
    // The links on which the token came back.
    let heard = Mutex<Set<String>>([])
    multicast.start { datagram in
      guard datagram.bytes == token else { return }
      let family = datagram.source.contains(":") ? "IPv6" : "IPv4"
      heard.withLock { _ = $0.insert("\(datagram.interface) \(family)") }
    }
    let end = ContinuousClock.now + Self.longestWait
    var links: [Link] = []
    repeat {
      // Blocks, as the other checks do: Swift's own sleep may not end under a faked clock.
      usleep(Self.intervalMicroseconds)
      multicast.send(token)
      let known = heard.withLock { $0 }
      links = multicast.links.map { link in
        Link(link: link, isHeard: known.contains("\(link.interface) \(link.family)"))
      }
    } while ContinuousClock.now < end
      && (links.isEmpty || links.contains { !$0.isHeard && $0.link.problem == nil })
    await multicast.stop()
    return links
  }

  func findings(_ links: [Link], of target: DiagnosisTarget) -> [Finding] {
    var findings: [Finding] = []
    if links.allSatisfy(\.link.isLoopback) {
      findings.append(
        finding(
          .note, tried: "looked for links that take multicast",
          seen: links.isEmpty ? "there are none" : "there are none but within this host",
          advice: "devices do not find each other here: kith run --peer HOST:PORT"))
    }
    return findings
      + links.map { looked in
        let link = looked.link
        let name = "\(Columns.printable(link.interface)) (\(link.family))"
        let tried = "joined, sent and listened on \(name)"
        if looked.isHeard {
          return finding(
            .good, tried: tried,
            seen: link.isLoopback ? "heard itself, which says nothing of networks" : "heard itself")
        }
        return finding(
          .note, tried: tried, seen: link.problem ?? "nothing came back",
          advice: "devices may not find each other there: let UDP to the multicast groups through, "
            + "or name addresses with kith run --peer HOST:PORT")
      }
  }
}
