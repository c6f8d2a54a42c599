import FoundationEssentials
import Glibc
import Kith
import KithCrypto
import KithNetwork
import KithTerminal
import Logging
import Synchronization

struct NetworkCheck: Check {
  static let name = "network"

  func look(at target: DiagnosisTarget) -> [LinkInterface] {
    (LinkInterface.current() ?? []).filter { !$0.isLoopback && !$0.subnets.isEmpty }
  }

  func findings(_ interfaces: [LinkInterface], of target: DiagnosisTarget) -> [Finding] {
    let tried = "looked for networks"
    let connected = interfaces.filter(\.hasCarrier)
    guard connected.isEmpty else {
      let names = connected.map { Columns.printable($0.name) }.joined(separator: ", ")
      return [finding(.good, tried: tried, seen: "this host has an address on \(names)")]
    }
    let seen =
      interfaces.isEmpty
      ? "no interface has an address"
      : "no interface that has an address is connected "
        + "(\(interfaces.map { Columns.printable($0.name) }.joined(separator: ", ")))"
    // A node that serves only this host needs no network.
    if target.isRunning, let report = target.report, !report.listening.isEmpty,
      report.listening.allSatisfy({ $0.hasPrefix("127.") || $0.hasPrefix("[::1]") })
    {
      return [finding(.note, tried: tried, seen: "\(seen); the node serves this host alone")]
    }
    // A folder needs none either.
    if target.isRunning,
      target.report?.carriers.contains(where: { $0.kind == "folder" && $0.problem == nil }) == true
    {
      return [finding(.note, tried: tried, seen: "\(seen); the node exchanges through a folder")]
    }
    return [
      finding(
        .problem, tried: tried, seen: seen,
        advice: "see ip addr: plug the cable in, join a wireless network, or see to DHCP")
    ]
  }
}

struct PortCheck: Check {
  static let name = "port"

  struct Owner: Equatable, Sendable {
    var process: Int32
    var program: String
  }

  enum Sight: Equatable, Sendable {
    /// The directory's node listens on these addresses.
    case listening([String])
    /// The node is running without listening.
    case silent
    case free
    /// Another process listens; nil if the system does not show it.
    case taken(Owner?)
    /// The port cannot be listened on for another reason.
    case refused(NetworkFailure)
  }

  func look(at target: DiagnosisTarget) async -> Sight {
    if target.isRunning, let report = target.report {
      return report.listening.isEmpty ? .silent : .listening(report.listening)
    }
    guard let failure = await NetworkFailure.listening(port: target.port) else { return .free }
    return failure.reason == .portTaken
      ? .taken(ListeningSockets.owner(ofPort: target.port)) : .refused(failure)
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    let tried = "tried to listen on TCP port \(target.port)"
    switch sight {
    case .listening(let addresses):
      return [
        finding(
          .good, tried: "asked the node where it listens",
          seen: addresses.joined(separator: ", "))
      ]
    case .silent:
      return [
        finding(
          .note, tried: "asked the node where it listens",
          seen: "nowhere: no other device can connect to it",
          advice: "let the others listen, or start it with --listen or without")
      ]
    case .free: return [finding(.good, tried: tried, seen: "it is free")]
    case .taken(let owner):
      let who = owner.map { "process \($0.process) (\($0.program)) has it" } ?? "somebody has it"
      return [
        finding(
          .problem, tried: tried, seen: who,
          advice: (owner == nil ? "see who: sudo ss -ltnp 'sport = :\(target.port)'; " : "")
            + "stop that one, or run the node on another: kith run --port 0")
      ]
    case .refused(let failure):
      return [
        finding(
          .problem, tried: tried, seen: "\(failure)",
          advice: failure.reason == .forbidden
            ? "ports below 1024 are root's: kith run --port 4114" : "kith run --listen ADDRESS")
      ]
    }
  }
}

/// proc(5), `/proc/net/tcp`.
enum ListeningSockets {
  /// The kernel's number for listening.
  private static let listenState = "0A"

  /// `text` is that of `/proc/net/tcp` or `tcp6`.
  static func inodes(ofPort port: UInt16, in text: String) -> [UInt64] {
    text.split(separator: "\n").dropFirst().compactMap { line in
      let fields = line.split(separator: " ")
      guard fields.count > 9, fields[3] == listenState,
        let local = fields[1].split(separator: ":").last, UInt16(local, radix: 16) == port
      else { return nil }
      return UInt64(fields[9])
    }
  }

  /// Nil if no process listens, or it is not visible to this user. Tries three times: both tables
  /// change while they are read, and rows may be skipped.
  static func owner(ofPort port: UInt16) -> PortCheck.Owner? {
    for _ in 0..<3 {
      if let owner = currentOwner(ofPort: port) { return owner }
    }
    return nil
  }

  private static func currentOwner(ofPort port: UInt16) -> PortCheck.Owner? {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].compactMap {
      try? InputText.text(of: $0)
    }
    let wanted = Set(
      tables.flatMap { inodes(ofPort: port, in: $0) }.map { "socket:[\($0)]" })
    guard !wanted.isEmpty else { return nil }
    let manager = FileManager.default
    for entry in (try? manager.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let process = Int32(entry) else { continue }
      let descriptors = "/proc/\(process)/fd"
      for descriptor in (try? manager.contentsOfDirectory(atPath: descriptors)) ?? [] {
        let target = try? manager.destinationOfSymbolicLink(atPath: "\(descriptors)/\(descriptor)")
        if let target, wanted.contains(target) {
          let name = try? InputText.text(of: "/proc/\(process)/comm")
          return PortCheck.Owner(
            process: process,
            program: name ?? "unknown")
        }
      }
    }
    return nil
  }
}

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
            seen: link.isLoopback
              ? "received its own beacon, which says nothing of networks"
              : "received its own beacon")
        }
        return finding(
          .note, tried: tried, seen: link.problem ?? "nothing came back",
          advice: "devices may not find each other there: let UDP to the multicast groups through, "
            + "or name addresses with kith run --peer HOST:PORT")
      }
  }
}
