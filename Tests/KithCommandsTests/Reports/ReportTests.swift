import Kith
import Testing

@testable import KithCommands

@Suite("Reports")
struct ReportTests {
  private static let laptop = DeviceFacts(
    id: "0a", name: "laptop", fingerprint: "7K2M-0QRS-WXYZ-1234", isSelf: true)
  private static let desktop = DeviceFacts(
    id: "0b", name: "desktop\u{1B}", fingerprint: "AAAA-BBBB-CCCC-DDDD", isConnected: true,
    isExchanging: true, isDialled: true, addresses: ["192.0.2.7:4114"],
    lastSeenMilliseconds: 1_000_000, clockOffsetMilliseconds: -12)
  private static let server = DeviceFacts(
    id: "0c", name: "server", fingerprint: "EEEE-FFFF-GGGG-HHHH", addresses: ["[2001:db8::1]:4114"])
  private static let store = StoreFacts(
    identifier: "default", keys: 264, bytes: 1_000_000, limitKeys: 1_024, limitBytes: 1_048_576,
    limitKeyBytes: 64, limitValueBytes: 1_048_576, hidden: 2, drafts: 1, refusals: 1,
    digest: "d1", heldBy: ["desktop"])

  private var status: StatusReport {
    StatusReport(
      directory: "/home/me/kith", processID: 4_711, listening: ["[::]:4114"],
      discovery: Self.discovery, account: "00112233445566778899",
      devices: [Self.laptop, Self.desktop, Self.server],
      stores: [Self.store], isClockSynchronised: true, problems: ["the disk is full"])
  }

  private static let discovery = NodeDiscovery(
    links: [
      .init(interface: "lo", isLoopback: true, family: "IPv4"),
      .init(interface: "eth0", family: "IPv4"),
      .init(interface: "eth0", family: "IPv6"),
      .init(interface: "eth1", family: "IPv4", problem: "no such device"),
    ],
    neighbours: [.init(device: "0b", addresses: ["192.0.2.7:4114"], milliseconds: 900)], sent: 7,
    ignored: 1)

  @Test func `status for people`() {
    #expect(
      status.text(.plain) == """
        device     laptop  7K2M-0QRS-WXYZ-1234
        account    0011223344556677
        directory  /home/me/kith
        node       running as process 4711, listening on [::]:4114
        peers      1 of 2 in touch
        discovery  1 device heard on lo, eth0
        clock      synchronised

        problem: the disk is full

        STORE    KEYS       SIZE  USED   ON  REMARKS
        default   264  976.6 KiB  95 %  2/3  1 write to publish, 2 hidden, 1 refused
        """)
  }

  @Test func `status does not take loopback for a network, nor silence for touch`() {
    var status = status
    status.discovery?.links.removeAll { !$0.isLoopback }
    status.devices[1].silentMilliseconds = 41_999
    let text = status.text(.plain)
    #expect(text.contains("discovery  1 device heard on this host alone, and no other network\n"))
    #expect(text.contains("peers      0 of 2 in touch\n"))
    #expect(status.devices[1].state.text == "silent for 41 s")
  }

  @Test func `status for programs`() {
    let text = status.document.text(indented: false)
    #expect(text.hasPrefix(#"{"account":"00112233445566778899","clockSynchronised":true,"#))
    #expect(text.contains(#""processID":4711"#) && text.hasSuffix(#""version":1}"#))
    #expect(
      text.contains(
        #""discovery":{"ignored":1,"links":[{"family":"IPv4","interface":"lo"},"#))
    #expect(
      text.contains(
        #""neighbours":[{"addresses":["192.0.2.7:4114"],"device":"0b","milliseconds":900}],"sent":7}"#
      )
    )
    #expect(text.contains(#""limits":{"bytes":1048576,"keyBytes":64,"keys":1024,"#))
  }

  @Test func `peers for people`() {
    let report = PeersReport(
      devices: [Self.laptop, Self.desktop, Self.server], nowMilliseconds: 1_065_000)
    #expect(
      report.text(.plain) == """
        DEVICE         FINGERPRINT          STATE        ADDRESS                 HEARD   CLOCK
        laptop         7K2M-0QRS-WXYZ-1234  this device
        desktop\\u{1b}  AAAA-BBBB-CCCC-DDDD  in touch     192.0.2.7:4114      1 min ago  -12 ms
        server         EEEE-FFFF-GGGG-HHHH  away         [2001:db8::1]:4114    not yet
        """)
  }

  @Test func `quota for people`() {
    let report = QuotaReport(store: Self.store, largest: [.init(key: "picture", bytes: 307_200)])
    #expect(
      report.text(.plain) == """
                    USED    LIMIT
        bytes  976.6 KiB  1.0 MiB  95 %  ████████████████████
        keys         264    1,024  25 %  ██████░░░░░░░░░░░░░░
        A key may have 64 B, a value 1.0 MiB.
        2 writes hidden; see: kith hidden
        1 transaction refused; see: kith refusals

        LARGEST       SIZE
        picture  300.0 KiB
        """)
  }

  @Test func `export is canonical, and says nothing of the device`() {
    let document = ExportDocument(
      store: "s", entries: [("a", 1), ("b", 1.0), ("c", ["y": true, "x": [.data(.init([1]))]])])
    #expect(
      document.versioned.text() == """
        {
          "format": "kith export",
          "store": "s",
          "values": {
            "a": 1,
            "b": 1.0,
            "c": {"x":[{"$data":"AQ=="}],"y":true}
          },
          "version": 1
        }
        """)
  }

  @Test(
    arguments: [
      [("a", 1), ("$date", "x")], [("$date", "x")], [("$dictionary", ["a": 1])],
      [("format", "kith export"), ("version", 1)], [("é", 1.0), ("z", .data(.init([0, 255])))], [],
    ] as [[(String, PropertyListValue)]])
  func `an export is imported as it was`(entries: [(String, PropertyListValue)]) throws {
    let document = ExportDocument(store: "s", entries: entries)
    for text in [document.plain.text(), document.versioned.text()] {
      let file = try ImportedFile.read(.init(text.utf8))
      #expect(file.skipped.isEmpty)
      let sorted = entries.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
      #expect(file.entries == sorted.map { .init(key: $0.0, value: $0.1) })
    }
  }

  @Test func `a bench says what misses`() {
    var report = BenchReport(isQuick: true)
    report.add("commit", "bare durable commit", 0.00012, .seconds)
    report.add("crowdedSets", "durable sets, 64 tasks", 15_000, .perSecond, .atLeast(20_000))
    report.add("read", "read of a present key", 80e-9, .seconds, .atMost(200e-9))
    #expect(!report.isKept)
    #expect(
      report.text(.plain) == """
        FIGURE                  MEASURED      BUDGET
        bare durable commit       120 µs
        durable sets, 64 tasks  15,000/s  ≥ 20,000/s  miss
        read of a present key      80 ns    ≤ 200 ns  ok
        """)
  }
}
