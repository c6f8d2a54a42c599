import Foundation
import KithCore
import KithCrypto
import KithTerminal
import Testing

@testable import Kith
@testable import KithCommands

@Suite("Reports")
struct ReportTests {
  private static let laptop = {
    var device = NodeStatus.Device(id: .test(10), name: "laptop")
    device.isThisDevice = true
    device.enroller = .creation
    device.software = "1.2"
    return device
  }()
  private static let desktop = {
    var device = NodeStatus.Device(id: .test(11), name: "desktop\u{1B}")
    device.isConnected = true
    device.lastSeenMilliseconds = 1_000_000
    device.enroller = .device(.test(10))
    device.behind = [StoreIdentifier("default")!: 0]
    device.software = "1.2"
    device.clockOffsetMilliseconds = -12
    return device
  }()
  private static let server = {
    var device = NodeStatus.Device(id: .test(12), name: "server")
    device.addresses = ["[2001:db8::1]:4114"]
    device.enroller = .recoveryKey
    device.wasSeen = false
    return device
  }()
  private static let store = {
    var store = NodeStatus.Store(
      identifier: StoreIdentifier("default")!,
      usage: KeyValueStore.Usage(bytes: 1_000_000, keys: 264, policy: .standard))
    store.hiddenKeys = 2
    store.drafts = 1
    store.refusals = 1
    store.upToDateDevices = [.test(11)]
    return store
  }()

  @Test func `a store that no program opened is said to be there in part`() {
    var store = NodeStatus.Store(
      identifier: StoreIdentifier("default")!,
      usage: KeyValueStore.Usage(bytes: 0, keys: 0, policy: .standard))
    store.authorsOverLimit = [Self.server.id]
    let name: (DeviceID) -> String = { _ in "server" }
    #expect(store.remarks(name) == "in part: the rest of server comes once a program here opens it")
    store.isOpenedHere = true
    #expect(store.remarks(name) == "over the limit of one device: server")
  }

  @Test func `a join names stores that came in part`() {
    let line = JoinProgressLine(Console(isQuiet: true))
    line.show(JoinProgress((stores: 3, pulledStores: 3, partialStores: 0, changeSets: 9)))
    #expect(line.partial == nil)
    line.show(JoinProgress((stores: 3, pulledStores: 3, partialStores: 1, changeSets: 9)))
    #expect(line.partial?.hasPrefix("1 store came only in part") == true)
    #expect(line.partialStores == 1)
    var report = AccountReport(
      summary: AccountSummary(
        account: AccountID(Digest256 { $0[0] = 1 }), device: .test(10), name: "laptop"),
      directory: "/d", partialStores: line.partialStores)
    #expect(report.document.text(indented: false).contains(#""partialStores":1,"#))
    report.partialStores = nil
    #expect(!report.document.text().contains("partialStores"))
  }

  /// The last line said "0 of 1 store".
  @Test func `a join's last line of progress is about all of it`() {
    let line = JoinProgressLine(Console(isQuiet: true))
    let steps: [(Int, Int, Int, String?)] = [
      (0, 0, 0, "Getting what the account has…"), (0, 0, 0, nil),
      (2, 0, 0, "Getting what the account has: 0 of 2 stores, 0 change sets…"), (2, 1, 5, nil),
      (2, 2, 7, "Got what the account has: 2 of 2 stores, 7 change sets."), (2, 2, 7, nil),
    ]
    for (stores, pulledStores, changeSets, text) in steps {
      let progress = JoinProgress(
        (stores: stores, pulledStores: pulledStores, partialStores: 0, changeSets: changeSets))
      #expect(line.line(progress) == text)
    }
  }

  @Test(
    arguments: [
      (0, "0 ms"), (-12, "-12 ms"), (10_500, "+10.5 s"), (120_000, "2 min ahead"),
      (259_200_000_000, "3000 days ahead"), (-7_200_000, "2 h behind"),
    ] as [(Int64, String)])
  func `a clock's difference is readable`(milliseconds: Int64, text: String) {
    #expect(Format.clock(milliseconds) == text)
  }

  @Test func `a moment that another clock told may be ahead`() {
    let now: UInt64 = 1_795_000_000_000
    #expect(Format.moment(now - 86_400_000, now: now) == "1 day ago")
    #expect(Format.moment(now + 60_000, now: now) == "now")
    #expect(Format.moment(now + 259_200_000, now: now) == "3 days ahead")
  }

  @Test func `nobody is said to have everything while a store is here in part`() {
    var status = Self.status
    status.devices[2].behind = [StoreIdentifier("default")!: 0]
    func devices() -> String {
      DevicesReport(status: status, nowMilliseconds: 1_020_000).text(.plain)
    }
    let sync = SyncReport(
      complete: [.test(11)], incomplete: [.test(12)], hasUnpublishedWrites: false)
    func synced() -> String {
      sync.text(
        .plain, store: status.stores[0].identifier, status: status, nowMilliseconds: 1_020_000)
    }
    let whole = "up to date  desktop\\u{1b}\nbehind      server"
    #expect(synced() == whole)
    #expect(devices().contains("; all are up to date\n") && devices().contains("  everything  "))
    status.stores[0].authorsOverLimit = [.test(12)]
    let part = "in part: the rest of server comes once a program here opens it"
    #expect(synced() == "\(whole)\nhere        \(part)")
    #expect(devices().contains("; all have what is here\n"))
    #expect(devices().contains("  what is here  ") && !devices().contains("everything"))
    #expect(
      devices().contains(
        "\nIn part here: default. The rest of each comes once a program here opens it.\n"))
    status.stores[0].isOpenedHere = true
    #expect(synced() == whole && devices().contains("; all are up to date\n"))
  }

  @Test func `the table of carriers says since when each holds everything`() {
    var status = NodeStatus(account: nil, device: nil)
    var nas = NodeStatus.Carrier(kind: "folder", location: "/mnt/nas\u{1B}", isShared: false)
    nas.listedMilliseconds = 990_000
    nas.heldSinceMilliseconds = 700_000
    (nas.objects, nas.bytes) = (3, 12_288)
    var cloud = NodeStatus.Carrier(
      kind: "webdav", location: "https://cloud.example.com/dav", isShared: true)
    cloud.problem = "The password is wrong."
    cloud.vanished = 1
    status.carriers = [nas, cloud]
    var report = CarriersReport(status: status, nowMilliseconds: 1_000_000)
    let text = report.text(.plain)
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.count == 3)
    #expect(lines[1].contains("since 5 min ago"))
    #expect(!text.contains("\u{1B}"))
    #expect(lines[2].contains("the account") && lines[2].contains("unknown"))
    #expect(lines[2].hasSuffix("The password is wrong; 1 object vanished"))
    report.isLong = true
    let long = report.text(.plain)
    #expect(long.hasPrefix(text + "\n\nCARRIER"))
    #expect(long.contains("12.0 KiB") && !long.contains("\u{1B}"))
    #expect(
      CarriersReport(status: .init(account: nil, device: nil), nowMilliseconds: 0).text(.plain)
        == "")
  }

  private static let status = {
    var status = NodeStatus(account: AccountID(Digest256 { $0[0] = 0xab }), device: .test(10))
    status.directory = "/home/me/kith"
    status.processID = 4_711
    status.listening = ["[::]:4114"]
    status.discovery = .init(
      links: [
        .init(interface: "lo", isLoopback: true, family: "IPv4"),
        .init(interface: "eth0", family: "IPv4"),
        .init(interface: "eth0", family: "IPv6"),
        .init(interface: "eth1", family: "IPv4", problem: "no such device"),
      ],
      neighbours: [.init(device: .test(11), addresses: ["192.0.2.7:4114"], milliseconds: 900)],
      sent: 7, ignored: 1)
    status.devices = [laptop, desktop, server]
    status.peers = [
      .init(
        device: .test(11), address: "192.0.2.7:4114", isDialled: true, clockOffsetMilliseconds: -12,
        isExchanging: true)
    ]
    status.stores = [store]
    status.clock.isSynchronised = true
    status.problems = [
      .init(name: "diskFull", message: "the disk is full", device: nil, path: nil)
    ]
    return status
  }()

  /// With texts as long as they usually become; a long name has a line of its own.
  @Test func `every table fits a terminal of 80 columns`() throws {
    var status = Self.status
    var nas = NodeStatus.Carrier(kind: "folder", location: "/mnt/nas/kith", isShared: true)
    nas.listedMilliseconds = 1_000
    nas.heldSinceMilliseconds = 1_000
    (nas.objects, nas.bytes, nas.vanished, nas.missing) = (10_000, 1_047_552, 100, 100)
    nas.problem = "The server at cloud.example.com does not answer, or not in time."
    status.carriers = [nas, nas]
    status.carriers[1].problem = nil
    status.stores[0].usage = .init(bytes: 1_047_552, keys: 1_024, policy: .standard)
    status.stores.append(
      NodeStatus.Store(
        identifier: StoreIdentifier("com.example.App")!,
        usage: .init(bytes: 67_000_000, keys: 65_535, policy: .maximum)))
    for number in 20..<50 as Range<UInt8> {
      var device = NodeStatus.Device(id: .test(number), name: "host\(number)")
      device.enroller = .creation
      status.devices.append(device)
    }
    let now: UInt64 = 10_000_000_000
    let store = StoresReport(status: status, showsEmpty: true)
    let history = HistoryReport(
      store: "s",
      values: [
        .init(
          number: 123_456, transaction: 1, key: "org/gnome/desktop/interface/clock-format",
          shown: try EncodedValue(.string(String(repeating: "x", count: 100))),
          endedMilliseconds: 1_000_000, endedBy: .test(11))
      ], status: status)
    let entries = try EntriesReport(
      store: "s", [(key: "theme", value: .string(String(repeating: "x", count: 100)))], prefix: "")
    let carriers = CarriersReport(status: status, isLong: true, nowMilliseconds: now)
    let devices = DevicesReport(status: status, isLong: true, nowMilliseconds: now)
    let style = Style(isColoured: false, columns: 80)
    for text in [
      carriers.text(style), store.text(style), history.text(style), entries.table(style),
      devices.text(style), AddressesReport(status: status, nowMilliseconds: now).text(style),
    ] {
      for line in text.split(separator: "\n") {
        #expect(Columns.width(String(line)) <= 80, "\(line)")
      }
    }
  }

  private static func report(_ now: UInt64 = 1_000_000) -> StatusReport {
    StatusReport(status: status, nowMilliseconds: now)
  }

  @Test func `status for people`() {
    #expect(
      Self.report().text(.plain) == """
        device     laptop  \(Self.laptop.fingerprint)
        account    ab00000000000000
        directory  /home/me/kith
        node       running as process 4711, listening on [::]:4114
        peers      1 of 2 connected
        discovery  1 device seen on lo, eth0
        clock      synchronised

        problem: the disk is full

        STORE         KEYS               SIZE  USED   ON  REMARKS
        default  264/1,024  976.6 KiB/1.0 MiB  95 %  2/3  1 write to publish, 2 hidden, 1 refused
        """)
  }

  @Test func `empty stores are listed only on request, with drafts too`() {
    var status = Self.status
    var empty = NodeStatus.Store(
      identifier: StoreIdentifier("gone")!,
      usage: KeyValueStore.Usage(bytes: 0, keys: 0, policy: .standard))
    empty.drafts = 1
    status.stores.append(empty)
    var report = StoresReport(status: status, showsEmpty: false)
    #expect(
      report.text(.plain) == """
        STORE         KEYS               SIZE  USED   ON  REMARKS
        default  264/1,024  976.6 KiB/1.0 MiB  95 %  2/3  1 write to publish, 2 hidden, 1 refused
        """)
    #expect(report.document.text().contains("gone"))
    report.showsEmpty = true
    #expect(report.text(.plain).contains("\ngone"))
    report.status.stores[1].hiddenKeys = 1
    report.showsEmpty = false
    #expect(report.text(.plain).contains("\ngone"))
  }

  @Test func `status does not take loopback for a network, nor silence for touch`() {
    var report = Self.report(1_041_999)
    report.status.discovery?.links.removeAll { !$0.isLoopback }
    let text = report.text(.plain)
    #expect(text.contains("discovery  1 device seen on this host alone, and no other network\n"))
    #expect(text.contains("peers      0 of 2 connected\n"))
    #expect(Self.status.state(of: Self.desktop, now: 1_041_999).text == "silent for 41 s")
  }

  @Test func `status for programs is the status`() throws {
    let text = Self.report().document.text()
    #expect(try JSONDecoder().decode(NodeStatus.self, from: Data(text.utf8)) == Self.status)
    let line = Self.report().document.text(indented: false)
    let id = DeviceID.test(11).hex
    for member in [
      #""account":"ab00"#, #""version":1"#, #""processID":4711"#, #""isRevoked":false"#,
      #""counters":{"clones":0,"#, #""clock":{"aheadOfHostMilliseconds":0,"#,
      #"{"family":"IPv4","interface":"lo","isLoopback":true}"#,
      "\"upToDateDevices\":[\"\(id)\"]",
      #""policy":{"keyBytes":64,"keys":1024,"totalBytes":1048576,"valueBytes":1048576}"#,
      #""problems":[{"code":"diskFull","message":"the disk is full"}]"#,
    ] {
      #expect(line.contains(member), "\(member) is not in \(line)")
    }
    #expect(!line.contains("null"))
  }

  private static func called(
    _ address: String, _ source: NodeStatus.Address.Source, _ device: DeviceID?,
    _ outcome: NodeStatus.Address.Outcome
  ) -> NodeStatus.Address {
    var called = NodeStatus.Address(address: address, source: source, device: device)
    (called.triedMilliseconds, called.outcome, called.reason) = (1_000_000, outcome, "it failed")
    return called
  }

  @Test func `devices for people, by name`() {
    var report = DevicesReport(status: Self.status, nowMilliseconds: 1_020_000)
    #expect(
      report.text(.plain) == """
        DEVICE         STATE            SEEN  HAS         ADDRESS
        desktop\\u{1b}  connected    20 s ago  everything  192.0.2.7:4114
        laptop         this device
        server         away            never              [2001:db8::1]:4114

        1 of 2 connected; not known: server

        Never seen: server. If you have no such device, because joining broke off, revoke it: \
        kith devices revoke
        """)
    let everyday = report.text(.plain)
    report.isLong = true
    let parts = everyday.split(separator: "\n\n", maxSplits: 1)
    func row(_ name: String, _ device: NodeStatus.Device, _ rest: String) -> String {
      name.padding(toLength: 15, withPad: " ", startingAt: 0) + device.fingerprint + rest
    }
    let rarer = [
      "DEVICE         FINGERPRINT            ENROLLED  BY            VERSION   CLOCK",
      row("desktop\\u{1b}", Self.desktop, "  17 min ago  laptop        1.2      -12 ms"),
      row("laptop", Self.laptop, "  17 min ago  creation      1.2"),
      row("server", Self.server, "  17 min ago  recovery key"),
    ].joined(separator: "\n")
    #expect(report.text(.plain) == "\(parts[0])\n\n\(rarer)\n\n\(parts[1])")
    for line in report.text(Style(isColoured: false, columns: 80)).split(separator: "\n") {
      #expect(Columns.width(String(line)) <= 80, "\(line)")
    }
    report.isLong = false
    let narrow = report.text(Style(isColoured: false, columns: 60)).split(separator: "\n")
    #expect(narrow.prefix(4).allSatisfy { Columns.width(String($0)) <= 60 })
  }

  @Test func `devices that lack something are named, alone on request, and why one is away`() {
    var status = Self.status
    status.devices[1].behind = [StoreIdentifier("default")!: 3]
    status.addresses = [
      Self.called("typo.invalid:4114", .named, nil, .unknownHost),
      Self.called("192.0.2.9:4114", .remembered, .test(12), .noAnswer),
    ]
    var report = DevicesReport(status: status, nowMilliseconds: 1_020_000)
    let text = report.text(.plain)
    #expect(text.contains("1 of 2 connected; behind: desktop\\u{1b}; not known: server\n"))
    #expect(text.contains("192.0.2.9:4114: no answer (20 s ago)\n"))
    #expect(
      text.contains("typo.invalid:4114: no such host (20 s ago); to stop calling it: kith devices"))
    report.isOnlyBehind = true
    #expect(!report.text(.plain).contains("laptop"))
    #expect(
      !report.document.text().contains("laptop") && report.document.text().contains("desktop"))
    status.processID = nil
    #expect(
      DevicesReport(status: status, nowMilliseconds: 0).text(.plain)
        .contains("no node runs, so no device is connected; start it: kith run"))
    #expect(
      AddressesReport(status: status, nowMilliseconds: 1_020_000).text(.plain) == """
        ADDRESS            DEVICE  FROM          CALLED  RESULT
        typo.invalid:4114          named       20 s ago  no such host
        192.0.2.9:4114     server  remembered  20 s ago  no answer
        """)
  }

  @Test func `writes that are not shown are in one table and one document`() throws {
    let report = UnshownReport(
      store: "s",
      hidden: [
        .init(
          key: "photo", hidden: try EncodedValue("x"), device: .test(11),
          writtenMilliseconds: 1_000_000)
      ],
      refusals: [
        .init(
          number: 3, reason: .quota, clock: HybridTime(milliseconds: 1_001_000),
          operations: [.init(key: "old", value: nil)])
      ],
      status: Self.status)
    #expect(
      report.text(.plain) == """
        KEY    NO  SIZE  WRITTEN BY     WRITTEN               VALUE    WHY
        photo       3 B  desktop\\u{1b}  1970-01-01T00:16:40Z  x        hidden
        old     3        this device    1970-01-01T00:16:41Z  removed  refused: over quota
        """)
    let line = report.document.text(indented: false)
    for member in [
      "\"hidden\":[{\"bytes\":3,\"device\":\"\(DeviceID.test(11).hex)\",\"key\":\"photo\",",
      #""refusals":[{"number":3,"operations":[{"key":"old","removed":true}],"reason":"quota","#,
      #""store":"s","version":1"#,
    ] {
      #expect(line.contains(member), "\(member) is not in \(line)")
    }
  }

  @Test func `past values are in one table and one document`() throws {
    let report = HistoryReport(
      store: "s",
      values: [
        .init(
          number: 12, transaction: 11, key: "theme", shown: try EncodedValue("light"),
          endedMilliseconds: 1_000_000,
          endedBy: .test(11)),
        .init(
          number: 3, transaction: 3, key: "theme", shown: nil, endedMilliseconds: 999_000,
          endedBy: nil),
      ],
      status: Self.status)
    #expect(
      report.text(.plain) == """
        KEY    NO  UNTIL                 ENDED BY       VALUE
        theme  12  1970-01-01T00:16:40Z  desktop\\u{1b}  light
        theme   3  1970-01-01T00:16:39Z  the quota      was missing
        """)
    #expect(
      report.document.text(indented: false)
        == #"{"store":"s","values":[{"endedBy":"\#(DeviceID.test(11).hex)","endedMilliseconds":"#
        + #"1000000,"key":"theme","number":12,"transaction":11,"type":"string","value":"light"},"#
        + #"{"endedMilliseconds":999000,"key":"theme","number":3,"transaction":3}],"version":1}"#)
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

  private static let exports: [[String: PropertyListValue]] = [
    ["a": 1, "$date": "x"], ["$date": "x"], ["$dictionary": ["a": 1]],
    ["format": "kith export", "version": 1], ["é": 1.0, "z": .data(.init([0, 255]))], [:],
  ]

  @Test func `an export is imported as it was`() throws {
    for values in Self.exports {
      let entries = values.map { ($0.key, $0.value) }
      let document = ExportDocument(store: "s", entries: entries)
      for text in [document.plain.text(), document.versioned.text()] {
        let file = try ImportedFile(.init(text.utf8))
        #expect(file.skipped.isEmpty)
        let sorted = entries.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
        #expect(file.entries == sorted.map { .init(key: $0.0, value: $0.1) })
      }
    }
  }
}
