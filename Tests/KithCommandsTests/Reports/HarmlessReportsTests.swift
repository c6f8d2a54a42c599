import Foundation
import KithCrypto
import Testing

@testable import Kith
@testable import KithCommands
@testable import KithCore
@testable import KithTerminal

/// Names, addresses, kinds, problems: most texts of a report come from other devices, or from the
/// servers of carriers. Each of them is hostile here.
@Suite("Hostile texts in reports")
struct HarmlessReportsTests {
  /// A terminal's title and clipboard, CSI, C1, bidirectional and invisible characters, and a line
  /// that looks like one of the tool.
  private static let hostile = """
    x\u{1B}]52;c;cHdu\u{7}\u{1B}[2J\u{9B}2J\u{9D}0;t\u{9C}\u{85}\u{202E}\u{2066}\u{200B}\u{61C}\u{E0041}\u{7F}\r
    kith: forged
    """

  /// Documents keep what is not seen: they are for programs.
  private static func expectHarmless(_ text: String, _ report: String) {
    let isDocument = report.hasSuffix("--json")
    for scalar in text.unicodeScalars where scalar != "\n" {
      let effect = CharacterEffect(scalar)
      if effect == .drawn || isDocument && effect == .unseen { continue }
      let number = String(scalar.value, radix: 16)
      Issue.record("\(report) prints U+\(number): \(text.debugDescription)")
      return
    }
    #expect(!text.split(separator: "\n").contains { $0.hasPrefix("kith: forged") }, "\(report)")
  }

  /// Has something in every member, however deep.
  private static let full = {
    var status = NodeStatus(account: AccountID(Digest256 { $0[0] = 0xAB }), device: .test(10))
    status.directory = "/home/me/kith"
    status.processID = 4_711
    status.listening = ["[::]:4114"]
    status.discovery = .init(
      links: [.init(interface: "eth0", family: "IPv4", problem: "no such device")],
      neighbours: [.init(device: .test(11), addresses: ["192.0.2.7:4114"], milliseconds: 900)],
      sent: 7, ignored: 1)
    var own = NodeStatus.Device(id: .test(10), name: "laptop")
    own.isThisDevice = true
    own.enroller = .creation
    var desktop = NodeStatus.Device(id: .test(11), name: "desktop")
    desktop.enroller = .device(.test(10))
    desktop.lastSeenMilliseconds = 1_000_000
    desktop.software = "1.2"
    desktop.addresses = ["192.0.2.7:4114"]
    desktop.behind = [StoreIdentifier("default")!: 3]
    desktop.clockOffsetMilliseconds = 5
    desktop.behindSinceMilliseconds = 1_000
    desktop.storesRejectedThere = [StoreIdentifier("other")!]
    desktop.storesRejectedHere = [StoreIdentifier("another")!]
    desktop.isConnected = true
    var lost = NodeStatus.Device(id: .test(12), name: "lost")
    lost.wasSeen = false
    lost.enroller = .recoveryKey
    var gone = NodeStatus.Device(id: .test(13), name: "gone")
    gone.isMember = false
    gone.revocation = .init(revokers: [.test(11)], milliseconds: 1_000_000)
    status.devices = [own, desktop, lost, gone]
    status.peers = [
      .init(device: .test(11), address: "192.0.2.7:4114", isDialled: true, isExchanging: true)
    ]
    var typo = NodeStatus.Address(address: "typo.invalid:4114", source: .named)
    var call = NodeStatus.Address(address: "192.0.2.9:4114", source: .remembered, device: .test(12))
    (typo.triedMilliseconds, typo.outcome, typo.reason) = (1_000, .failed, "no such thing")
    (call.triedMilliseconds, call.outcome, call.reason) = (1_000, .noAnswer, "no answer")
    status.addresses = [typo, call]
    var store = NodeStatus.Store(
      identifier: StoreIdentifier("default")!,
      usage: .init(bytes: 1_000, keys: 26, policy: .standard))
    store.missing = StoreLoss(rows: 2)
    store.upToDateDevices = [.test(11)]
    store.policyMismatches = [.test(11)]
    store.removalsUnseenBy = [.test(11)]
    store.authorsOverLimit = [.test(11)]
    status.stores = [store]
    var failing = NodeStatus.Carrier(kind: "webdav", location: "https://x/", isShared: true)
    failing.problem = "The server says no."
    failing.problemMilliseconds = 1_000
    failing.listedMilliseconds = 1_000
    failing.heldSinceMilliseconds = 1_000
    var working = failing
    working.problem = nil
    status.carriers = [failing, working]
    status.carrierPlace = "0123456789abcdef"
    status.clock.follows = .test(11)
    status.clock.differences = [
      .init(device: .test(11), milliseconds: 4_000_000, outcome: .neitherSynchronised)
    ]
    status.clock.peers = [.init(device: .test(11), milliseconds: 90_000, isSynchronised: true)]
    status.problems = [
      .init(name: "diskFull", message: "the disk is full", device: .test(11), path: "/home/me/kith")
    ]
    return status
  }()

  /// With every text replaced that may be any text: not ids and identifiers.
  private static func poisoned() throws -> (status: NodeStatus, texts: Int) {
    var tree = try JSONSerialization.jsonObject(with: JSONEncoder().encode(full))
    var texts = 0
    func poison(_ path: [Int]) throws {
      var place = path[...]
      let changed = replacing(tree, &place)
      let data = try JSONSerialization.data(withJSONObject: changed)
      guard (try? JSONDecoder().decode(NodeStatus.self, from: data)) != nil else { return }
      (tree, texts) = (changed, texts + 1)
    }
    for path in paths(tree) { try poison(path) }
    let data = try JSONSerialization.data(withJSONObject: tree)
    return (try JSONDecoder().decode(NodeStatus.self, from: data), texts)
  }

  /// The places of a document's texts: which child, at each level.
  private static func paths(_ tree: Any) -> [[Int]] {
    if tree is String { return [[]] }
    return children(tree).enumerated().flatMap { index, child in
      paths(child.value).map { [index] + $0 }
    }
  }

  private static func children(_ tree: Any) -> [(key: String, value: Any)] {
    if let members = tree as? [String: Any] { return members.sorted { $0.key < $1.key } }
    return (tree as? [Any] ?? []).map { ("", $0) }
  }

  private static func replacing(_ tree: Any, _ path: inout ArraySlice<Int>) -> Any {
    guard let index = path.popFirst() else { return hostile }
    var children = children(tree)
    children[index].value = replacing(children[index].value, &path)
    guard tree is [String: Any] else { return children.map(\.value) }
    return Dictionary(uniqueKeysWithValues: children.map { ($0.key, $0.value) })
  }

  /// A new member that the sample leaves out would not be replaced.
  @Test func `the sample has something in every member of a status`() {
    var members: [String: Bool] = [:]
    func look(at value: Any) {
      let mirror = Mirror(reflecting: value)
      let type = String(reflecting: mirror.subjectType)
      for child in mirror.children {
        look(at: child.value)
        guard mirror.displayStyle == .struct, type.contains("NodeStatus") else { continue }
        let content = Mirror(reflecting: child.value)
        let isEmpty =
          [.optional, .collection, .dictionary].contains(content.displayStyle)
          && content.children.isEmpty
        members["\(type).\(child.label ?? "")", default: false] =
          members["\(type).\(child.label ?? "")"] == true || !isEmpty
      }
    }
    look(at: Self.full)
    #expect(members.count > 80)
    for (member, isFilled) in members where !isFilled { Issue.record("nothing is in \(member)") }
  }

  @Test func `no report of a status prints anything that a terminal obeys`() throws {
    let (status, texts) = try Self.poisoned()
    #expect(texts >= 20)
    for isColoured in [false, true] {
      for (name, text) in try Self.reports(status) {
        let text = text(Style(isColoured: isColoured))
        Self.expectHarmless(text.replacing(/\u{1B}\[[0-9]+m/, with: ""), name)
      }
    }
  }

  /// The texts of all commands that show something of a status, and their documents.
  private static func reports(
    _ status: NodeStatus
  ) throws -> [(name: String, text: (Style) -> String)] {
    let now: UInt64 = 1_020_000
    let store = try #require(StoreIdentifier("default"))
    let devices = DevicesReport(status: status, showsRevoked: true, nowMilliseconds: now)
    let addresses = AddressesReport(status: status, nowMilliseconds: now)
    let check = StatusCheck(status, peers: 2, behind: 0, nowMilliseconds: now)
    let carriers = CarriersReport(status: status, nowMilliseconds: now)
    let clock = ClockReport(status: status)
    let all = StatusReport(status: status, nowMilliseconds: now)
    let stores = StoresReport(status: status, showsEmpty: true)
    let value = PropertyListValue.dictionary([hostile: .array([.string(hostile)])])
    let history = HistoryReport(
      store: "s",
      values: [
        .init(
          number: 1, transaction: 1, key: .init(hostile), shown: try EncodedValue(value),
          endedMilliseconds: 1_000_000,
          endedBy: .test(11))
      ], status: status)
    let unshown = UnshownReport(
      store: "s",
      hidden: [
        .init(
          key: .init(hostile), hidden: try EncodedValue(value), device: .test(11),
          writtenMilliseconds: 1_000_000)
      ],
      refusals: [
        .init(
          number: 3, reason: .quota, clock: HybridTime(milliseconds: 1_001_000),
          operations: [.init(key: hostile, value: try EncodedValue(value))])
      ],
      status: status)
    let entries = try EntriesReport(store: "s", [(key: hostile, value: value)], prefix: "")
    let account = AccountReport(
      summary: AccountSummary(
        account: AccountID(Digest256 { $0[0] = 1 }), device: .test(10), name: hostile),
      directory: hostile, others: status.devices)
    let accounts = AccountsReport(accounts: [
      .init(account: AccountID(Digest256 { $0[0] = 1 }), directory: hostile, isSignedIn: true)
    ])
    var reports: [(String, (Style) -> String)] = [
      ("status", all.text), ("devices", devices.text),
      ("devices addresses", addresses.text), ("status --check", check.text),
      ("carrier list", carriers.text),
      ("clock", clock.text), ("stores", stores.text), ("history", history.text),
      ("unshown", unshown.text), ("ls -l", entries.table), ("ls", { _ in entries.keys }),
      ("account create", account.text), ("account list", accounts.text),
      ("notices of names", { _ in DuplicateNames.notices(status.devices).joined(separator: "\n") }),
      (
        "sync",
        { _ in
          SyncShortfall(
            report: SyncReport(
              complete: [], incomplete: status.devices.map(\.id), hasUnpublishedWrites: true),
            status: status, store: store, nowMilliseconds: now
          ).description
        }
      ),
      (
        "sync",
        { style in
          SyncReport(
            complete: [.test(11)], incomplete: [.test(12)], hasUnpublishedWrites: false
          ).text(style, store: store, status: status, nowMilliseconds: now)
        }
      ),
    ]
    for (name, document) in [
      ("status", all.document), ("devices", devices.document),
      ("devices addresses", addresses.document), ("status --check", check.document),
      ("carrier list", carriers.document),
      ("clock", clock.document), ("stores", stores.document), ("history", history.document),
      ("unshown", unshown.document), ("ls", entries.document), ("accounts", accounts.document),
    ] {
      reports.append((name + " --json", { _ in document.text() }))
    }
    for isRunning in [false, true] {
      let target = DiagnosisTarget(
        directory: hostile, port: 4_114, nowMilliseconds: now,
        device: isRunning ? .running(status) : .opened(status))
      let findings =
        DirectoryCheck().findings(.init(isUnderPassphrase: false, damaged: [hostile]), of: target)
        + RosterCheck().findings((), of: target)
        + VersionsCheck().findings((), of: target)
        + CarrierCheck().findings(status.carriers, of: target)
      reports.append(("doctor", DoctorReport(findings: findings).text))
    }
    return reports
  }

  /// What `carrier check`, `add`, `password` and `remove` print of a carrier that another device noted.
  @Test(arguments: ["folder", "webdav", "s3", "other"])
  func `a carrier's location and credentials are harmless in every command`(
    kind: String
  ) async throws {
    let hostile = Self.hostile
    let cases: [(location: String, credentials: String?)] = [
      (hostile, nil), ("https://x.invalid/\(hostile)", nil), ("https://x.invalid/bucket", hostile),
      ("/x", hostile),
    ]
    for (location, text) in cases {
      let settings = CarrierSettings(
        kind: kind, location: location, credentials: text, isShared: true)
      let key = Key(settings.id.description)
      let shared = try #require(CarrierSettings.shared(in: [key: settings.value]).first)
      // A folder is never the account's, and a trial would look at the disk.
      let trial = kind == "folder" ? CarrierTrial() : await CarrierTrial.run(shared, in: "kith1/x")
      Self.expectHarmless(trial.text(.plain), "carrier check")
      Self.expectHarmless(trial.document(shared).text(), "carrier check --json")
      let problem = Columns.sentence(trial.problem ?? "")
      Self.expectHarmless(Columns.readable(problem, indent: ""), "carrier password")
      for meant in [nil, "nothing", "x"] {
        do throws(CommandFailure) {
          _ = try [shared, shared].find(meant)
        } catch {
          let message = Columns.readable(error.message ?? "", indent: "")
          Self.expectHarmless(message, "carrier remove")
        }
      }
    }
  }

  @Test func `the summary of an import and the plan of a revocation are harmless`() {
    var summary = ImportSummary(
      format: .json, imported: 1,
      refused: [.init(key: Self.hostile, code: "notAValue", reason: Self.hostile)],
      warning: Self.hostile, isDryRun: false, seconds: 1)
    summary.file = Self.hostile
    Self.expectHarmless(summary.text(.plain), "import")
    Self.expectHarmless(summary.document.text(), "import --json")
    let device = NodeStatus.Device(id: .test(11), name: Self.hostile)
    let plan = RevocationPlan(
      device: device, staying: [device], going: [device], carriers: [Self.hostile])
    for line in plan.lines + [plan.carrierNotice] { Self.expectHarmless(line, "devices revoke") }
    Self.expectHarmless(plan.document.text(), "devices revoke --json")
  }

  /// A name that read like a fingerprint came before the true one.
  @Test func `a name that asks to join, or invites, is harmless and forges no fingerprint`() {
    let (theirs, own) = ("7ABC-7ABC-7ABC-7ABC", "2DEF-2DEF-2DEF-2DEF")
    let forged = "b at 1:1 asks to join. Its fingerprint is  9XYZ-9XYZ-9XYZ-9XYZ"
    for name in [Self.hostile, forged, String(repeating: "x", count: 10_000)] {
      let device = PairingDevice(
        id: .test(11), name: name, fingerprint: theirs, address: Self.hostile)
      let lines = device.introduction("asks to join", beside: own)
      for line in lines + [device.shownName] {
        #expect(!line.contains("\n"))
        Self.expectHarmless(line, "invite, join")
      }
      #expect(lines.count == 3 && lines[2] == "The other one calls itself  \(device.shownName)")
      #expect(lines[0].hasSuffix(" asks to join. Its fingerprint is  \(theirs)"))
      #expect(lines[1] == "This device's fingerprint is  \(own)")
      #expect(device.shownName.count <= 65 || name == Self.hostile)
      let member = NodeStatus.Device(id: .test(12), name: name)
      let notice = DuplicateNames.notice(name, theirs, among: [member])
      Self.expectHarmless(notice ?? "\u{1B}", "invite, join")
      Self.expectHarmless(member.document.text(indented: false), "invite --json")
    }
  }

  @Test func `a carrier of the account whose kind is no word is not used`() {
    func shared(_ kind: String) -> [CarrierSettings] {
      let settings = CarrierSettings(kind: kind, location: "https://x/", isShared: true)
      return CarrierSettings.shared(in: [Key(settings.id.description): settings.value])
    }
    #expect(shared("webdav").count == 1 && shared("s3").count == 1)
    for kind in ["", "Webdav", "web dav", Self.hostile, "é", String(repeating: "a", count: 17)] {
      #expect(shared(kind).isEmpty, "\(kind.debugDescription)")
    }
  }
}
