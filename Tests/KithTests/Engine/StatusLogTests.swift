import Foundation
import KithCrypto
import Testing

@testable import Kith
@testable import KithCore

@Suite("The log that the log tells")
struct StatusLogTests {
  private static func id(_ byte: UInt8) -> DeviceID {
    DeviceID { $0.copyBytes(from: repeatElement(byte, count: 32)) }
  }

  private static let (laptop, desktop) = (id(10), id(11))
  private static let store = StoreIdentifier("default")!

  /// The laptop's status, with the desktop as a member.
  private static let alone = {
    var status = NodeStatus(account: nil, device: laptop)
    status.devices = [
      NodeStatus.Device(id: laptop, name: "laptop"),
      NodeStatus.Device(id: desktop, name: "desktop"),
    ]
    status.devices[0].isThisDevice = true
    status.stores = [
      NodeStatus.Store(
        identifier: store, usage: KeyValueStore.Usage(bytes: 0, keys: 0, policy: .standard))
    ]
    return status
  }()

  private static func changing(_ change: (inout NodeStatus) -> Void) -> NodeStatus {
    var status = alone
    change(&status)
    return status
  }

  private static let connected = changing { status in
    status.devices[1].isConnected = true
    status.peers = [
      NodeStatus.Peer(
        device: desktop, address: "192.0.2.7:4114", isDialled: false, isExchanging: true)
    ]
  }

  /// The desktop's address, which leads nowhere, and one that a person named.
  private static let unreached = changing { status in
    status.addresses = [
      NodeStatus.Address(address: "typo.invalid:4114", source: .named),
      NodeStatus.Address(address: "192.0.2.7:4114", source: .remembered, device: desktop),
    ]
    (status.addresses[0].outcome, status.addresses[0].reason) = (.unknownHost, "none")
    (status.addresses[1].outcome, status.addresses[1].reason) = (.noAnswer, "silence")
  }

  private static let differences: [(NodeStatus, NodeStatus, [LogLine])] = [
    (alone, alone, []),
    (
      alone, connected,
      [LogLine(.connected, device: desktop, ["address": "192.0.2.7:4114"])]
    ),
    (connected, connected, []),
    (connected, alone, [LogLine(.disconnected, device: desktop)]),
    (
      alone, unreached,
      [
        LogLine(.unreached, ["address": "typo.invalid:4114", "reason": "none"]),
        LogLine(
          .unreached, device: desktop, ["address": "192.0.2.7:4114", "reason": "silence"]),
      ]
    ),
    (unreached, unreached, []),
    (
      changing { $0.devices.removeLast() },
      changing { $0.devices[1].enroller = .device(laptop) },
      [LogLine(.joined, device: desktop, ["by": "laptop"])]
    ),
    (
      alone, changing { $0.devices[0].name = "studio" },
      [LogLine(.renamed, device: laptop, ["before": "laptop"])]
    ),
    (alone, changing { $0.devices[1].isMember = false }, []),
    (
      changing { $0.stores[0].lastRefusal = 1 }, changing { $0.stores[0].lastRefusal = 3 },
      [LogLine(.writesRefused, store: store, ["count": "2"])]
    ),
    // Of a full list the oldest are dropped, or a program took some meanwhile.
    (
      changing { ($0.stores[0].refusals, $0.stores[0].lastRefusal) = (3, 3) },
      changing { ($0.stores[0].refusals, $0.stores[0].lastRefusal) = (3, 4) },
      [LogLine(.writesRefused, store: store, ["count": "1"])]
    ),
    (
      changing { ($0.stores[0].refusals, $0.stores[0].lastRefusal) = (3, 3) },
      changing { $0.stores[0].lastRefusal = 3 }, []
    ),
    (
      alone, changing { $0.stores[0].hiddenKeys = 2 },
      [LogLine(.valuesHidden, store: store, ["count": "2"])]
    ),
    (
      changing { $0.stores[0].hiddenKeys = 1 }, changing { $0.stores[0].hiddenKeys = 2 }, []
    ),
  ]

  @Test func `a difference of two statuses is told`() {
    for (number, (before, after, lines)) in Self.differences.enumerated() {
      var log = StatusLog()
      _ = log.lines(before, at: 0)
      #expect(log.lines(after, at: 1_000) == lines, "case \(number)")
      #expect(log.lines(after, at: 2_000) == [], "case \(number)")
    }
  }

  /// A member may name ever new ones.
  @Test func `a carrier that is used no more is forgotten`() {
    let failing = Self.changing { status in
      status.carriers = [NodeStatus.Carrier(kind: "s3", location: "there", isShared: true)]
      status.carriers[0].problem = "Nobody answers."
    }
    let line = LogLine(.carrierFailed, ["carrier": "there", "reason": "Nobody answers."])
    var log = StatusLog()
    for (status, lines) in [
      (failing, [line]), (failing, []), (Self.alone, []), (failing, [line]),
    ] {
      #expect(log.lines(status, at: 0) == lines)
    }
  }

  @Test func `limits agree again once a session has compared them`() {
    var differing = Self.connected
    differing.stores[0].policyMismatches = [Self.desktop]
    var log = StatusLog()
    let agree = [LogLine(.policiesAgree, device: Self.desktop, store: Self.store)]
    for (status, time, told) in [
      (differing, 0, nil), (differing, 60_000, []), (Self.alone, 61_000, nil),
      (Self.alone, 90_000, []), (Self.connected, 91_000, nil), (Self.connected, 94_999, []),
      (differing, 95_000, []), (Self.connected, 99_999, []), (Self.connected, 100_000, agree),
      (Self.connected, 200_000, []),
    ] as [(NodeStatus, UInt64, [LogLine]?)] {
      let lines = log.lines(status, at: time)
      if let told { #expect(lines == told, "at \(time)") }
    }
  }

  @Test func `the first status tells what goes on, not what is old`() {
    var log = StatusLog()
    var status = Self.connected
    status.stores[0].lastRefusal = 1
    #expect(log.lines(status, at: 0).map(\.subject.message) == [.connected])
  }

  @Test func `a device that comes and goes does not fill the log, and its last state is told`() {
    var log = StatusLog()
    var told: [LogLine.Message] = []
    for second in UInt64(0)..<600 {
      let status = second.isMultiple(of: 2) ? Self.connected : Self.alone
      told += log.lines(status, at: second * 1_000).map(\.subject.message)
    }
    #expect(told == [.connected, .disconnected, .connected, .disconnected])
    #expect(log.lines(Self.connected, at: 599_999).isEmpty)
    let later = log.lines(Self.connected, at: 603_000)
    #expect(later.map(\.subject.message) == [.connected])
  }

  @Test func `a rateLimit is for each subject, and comes again`() {
    var rateLimit = LogRateLimit<String>()
    let taken = (0..<6).map { rateLimit.permit("a", at: $0) }
    #expect(taken == [true, true, true, true, false, false])
    let others = [
      rateLimit.permit("b", at: 6), rateLimit.permit("a", at: 599_999),
      rateLimit.permit("a", at: 600_000),
    ]
    #expect(others == [true, false, true])
  }

  @Test func `each address that a person named is told, and a device's addresses share a limit`() {
    var status = Self.alone
    status.addresses = (1...6).map { number in
      var address = NodeStatus.Address(address: "h\(number).invalid:4114", source: .named)
      (address.outcome, address.reason) = (.unknownHost, "none")
      return address
    }
    var log = StatusLog()
    var rateLimit = LogRateLimit<LogLine.Subject>()
    let named = log.lines(status, at: 0).map { rateLimit.permit($0.subject, at: 0) }
    #expect(named == Array(repeating: true, count: 6))
    let told = (1...6).map { LogLine(.unreached, device: Self.desktop, ["address": "\($0)"]) }
    let permitted = told.map { rateLimit.permit($0.subject, at: 0) }
    #expect(permitted == [true, true, true, true, false, false])
  }

  @Test func `a rateLimit forgets subjects whose time is over`() {
    var rateLimit = LogRateLimit<Int>()
    for subject in 0..<1_000 { _ = rateLimit.permit(subject, at: 1) }
    for time in [600_000, 659_999] as [UInt64] { _ = rateLimit.permit(0, at: time) }
    #expect(rateLimit.count == 1_000)
    _ = rateLimit.permit(0, at: 660_000)
    #expect(rateLimit.count == 1)
  }

  @Test func `names in the metadata are harmless for every handler`() throws {
    let lines = Journal.Lines()
    let engine = try EngineFixture(logger: lines.logger).engine
    let name = "a\u{85}b\u{9B}2J\u{202E}c\u{200B}\u{2028}\" level=error é"
    let store = try #require(StoreIdentifier(name))
    engine.log(LogLine(.valuesHidden, store: store))
    engine.log(LogLine(.damaged, ["stores": name]))
    let shown = #"a\u{85}b\u{9b}2J\u{202e}c\u{200b}\u{2028}\u{22} level=error é"#
    #expect(lines.all.count == 2)
    for line in lines.all { #expect(line.contains(shown), "\(line)") }
  }
}

/// Docs/Logs.md has each line of the usual levels, each metric, and no other.
@Suite("Docs/Logs.md")
struct LogsPageTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  private static func sources(_ module: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(
      atPath: root.appending(path: "Sources/\(module)").path
    )
    .filter { $0.hasSuffix(".swift") }
    .map { try text("Sources/\(module)/\($0)") }
  }

  @Test func `the page has the lines that the code logs`() throws {
    let row = #/^\| (debug|info|notice|warning|error) \| (.*?) \|/#.anchorsMatchLineEndings()
    let page = try Self.text("Docs/Logs.md").matches(of: row).map { "\($0.1): \($0.2)" }
    var logged = Set(LogLine.Message.allCases.map { "\($0.level): \($0.rawValue)" })
    // A text that begins with an interpolation is a setting's own.
    let call = #/[lL]ogger\.(info|notice|warning|error)\(\s*"([^"\\][^"]*)"/#
    for module in ["Kith", "KithNetwork", "UbiquitousKeyValueStore"] {
      for source in try Self.sources(module) {
        logged.formUnion(source.matches(of: call).map { "\($0.1): \($0.2)" })
      }
    }
    #expect(Set(page).subtracting(logged) == [], "the code does not log these")
    #expect(logged.subtracting(page) == [], "the page lacks these")
    #expect(page.count == Set(page).count)
  }

  @Test func `the page has the metrics that the code counts`() throws {
    let row = #/^\| `(kith_\w+)` \| (counter|timer) \|/#.anchorsMatchLineEndings()
    let page = try Self.text("Docs/Logs.md").matches(of: row).map { "\($0.2) \($0.1)" }
    let made = try Self.text("Sources/Kith/Engine/Metrics.swift")
      .matches(of: #/(Counter|Timer)\(label: "(\w+)"/#)
      .map { "\($0.1.lowercased()) \($0.2)" }
    #expect(page.sorted() == made.sorted())
  }
}
