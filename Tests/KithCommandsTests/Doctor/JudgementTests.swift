import Foundation
import Glibc
import Kith
import KithCore
import KithTerminal
import Testing

@testable import KithCommands
@testable import KithNetwork

/// The judgements of `kith doctor`, check by check.
@Suite("Judgements of the doctor")
struct JudgementTests {
  private static let day: UInt64 = 86_400_000
  private static let now: UInt64 = 1_795_000_000_000

  private func report(
    devices: [NodeStatus.Device] = [], peers: [NodeStatus.Peer] = [],
    listening: [String] = ["127.0.0.1:4114"], problems: [String] = []
  ) -> NodeStatus {
    var status = NodeStatus(account: nil, device: nil)
    status.processID = 7
    status.listening = listening
    status.clock.isSynchronised = true
    status.problems = problems.map { .init(name: "damaged", message: $0, device: nil, path: nil) }
    status.devices = devices
    status.peers = peers
    return status
  }

  private func id(_ name: String) -> DeviceID {
    DeviceID { $0.copyBytes(from: name.utf8.prefix(32)) }
  }

  private func device(
    _ name: String, isSelf: Bool = false, isConnected: Bool = false, seen: UInt64? = nil,
    issued: UInt64 = now, wasSeen: Bool = true
  ) -> NodeStatus.Device {
    var device = NodeStatus.Device(id: id(name), name: name)
    device.isThisDevice = isSelf
    device.isConnected = isConnected
    device.lastSeenMilliseconds = seen
    device.enrolledMilliseconds = issued
    device.wasSeen = wasSeen
    return device
  }

  private func peer(
    _ name: String, offset: Int64 = 0, isExchanging: Bool = true
  ) -> NodeStatus.Peer {
    NodeStatus.Peer(
      device: id(name), address: "192.0.2.1:4114", isDialled: true,
      clockOffsetMilliseconds: offset, isExchanging: isExchanging)
  }

  private func target(_ device: DiagnosisTarget.Device) -> DiagnosisTarget {
    DiagnosisTarget(directory: "/d", port: 4114, nowMilliseconds: Self.now, device: device)
  }

  private func running(_ report: NodeStatus) -> DiagnosisTarget {
    target(.running(report))
  }

  // MARK: Carriers

  @Test func `a carrier is judged by what the node knows of it`() {
    var good = NodeStatus.Carrier(kind: "folder", location: "/nas", isShared: false)
    good.heldSinceMilliseconds = Self.now
    var empty = good
    empty.heldSinceMilliseconds = nil
    var broken = good
    broken.problem = "The folder is not there."
    var robbed = good
    robbed.vanished = 2
    var status = report()
    var unused = good
    unused.problem = "It is not used: a device uses 4 carriers."
    status.carriers = [good, empty, broken, robbed, unused]
    let check = CarrierCheck()
    let findings = check.findings(status.carriers, of: running(status))
    #expect(findings.map(\.verdict) == [.good, .note, .problem, .problem, .note])
    #expect(findings[1].advice == "put it there now: kith sync")
    #expect(findings[2].advice?.hasPrefix("The folder is not there.") == true)
    #expect(findings[3].advice?.contains("kith carrier password") == true)
    #expect(findings[4].seen == "it is above the limit" && findings[4].advice == unused.problem)
    #expect(check.findings(status.carriers, of: target(.opened(status))).isEmpty)
  }

  // MARK: Directory

  @Test func `a directory that can be opened is good, and what is wrong with it is told`() throws {
    let check = DirectoryCheck()
    let running = check.findings(
      .init(isUnderPassphrase: true), of: running(report(problems: ["The disk is bad."])))
    #expect(running.map(\.verdict) == [.good, .problem])
    #expect(running[0].seen.contains("process 7") && running[0].seen.contains("under a passphrase"))
    #expect(running[1].advice == "The disk is bad.")
    let opened = check.findings(
      .init(isUnderPassphrase: false, damaged: ["/d/kith.sqlite.damaged-1"]),
      of: target(.opened(report())))
    #expect(opened.map(\.verdict) == [.good, .note, .note])
    #expect(opened[2].seen.contains("damaged-1"))
    #expect(check.findings(.init(), of: target(.none)).map(\.verdict) == [.note])
    let damaged = KithError(.damaged, "It is torn.", path: "/d/kith.sqlite")
    let broken = check.findings(.init(isUnderPassphrase: false), of: target(.failed(damaged)))
    #expect(broken.map(\.verdict) == [.problem, .note])
    #expect(broken[0].advice == "/d/kith.sqlite: It is torn.")
    #expect(!broken.contains { $0.seen.contains("damaged") })
    let silent = check.findings(.init(), of: target(.silent(damaged)))
    #expect(silent.map(\.verdict) == [.problem])
    // That no node runs is known without the passphrase, and a wrong one is a mistake.
    let locked = check.findings(
      .init(isUnderPassphrase: true), of: target(.locked(KithError(.passphrase, "Give it."))))
    #expect(locked.map(\.verdict) == [.unknown, .problem])
    #expect(locked[1].seen == "none runs")
    let wrong = check.findings(
      .init(isUnderPassphrase: true), of: target(.failed(KithError(.passphrase, "It is wrong."))))
    #expect(wrong.map(\.verdict) == [.problem, .note])
  }

  @Test func `whatever keeps commands from working is a problem`() {
    var unlisted = target(.none)
    unlisted.accountsError = KithError(
      .damaged, "It cannot be understood.", path: "/d/accounts.json")
    let findings = DirectoryCheck().findings(.init(), of: unlisted)
    #expect(findings.map(\.verdict) == [.problem])
    #expect(findings[0].advice?.contains("accounts.json") == true)
    var pending = running(report())
    pending.pendingAdoption = .init(name: "damaged", message: "Not there.", device: nil, path: nil)
    #expect(DirectoryCheck().findings(.init(), of: pending).map(\.verdict) == [.good, .problem])
  }

  // MARK: Port

  @Test func `a port is free, listened on, taken or refused`() throws {
    let check = PortCheck()
    let target = target(.none)
    let owner = PortCheck.Owner(process: 12, program: "nginx")
    let expected: [(PortCheck.Sight, Finding.Verdict, String)] = [
      (.free, .good, "free"), (.listening(["[::]:4114"]), .good, "[::]:4114"),
      (.silent, .note, "nowhere"), (.taken(owner), .problem, "process 12 (nginx)"),
      (.taken(nil), .problem, "somebody"),
      (
        .refused(NetworkFailure(host: "::", port: 80, reason: .forbidden)), .problem,
        "does not let this user use [::]:80"
      ),
    ]
    for (sight, verdict, words) in expected {
      let findings = check.findings(sight, of: target)
      #expect(findings.map(\.verdict) == [verdict])
      #expect(findings[0].seen.contains(words), "\(findings)")
      #expect((findings[0].advice == nil) == (verdict == .good))
    }
  }

  @Test func `the listening process is found in the kernel's table`() {
    let table = """
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
         0: 0100007F:1012 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
         1: 0100007F:1012 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1
         2: 0100007F:1013 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1
      garbage
      """
    #expect(ListeningSockets.inodes(ofPort: 0x1012, in: table) == [4711])
    #expect(ListeningSockets.inodes(ofPort: 1, in: table) == [])
    #expect(ListeningSockets.inodes(ofPort: 1, in: "") == [])
  }

  // MARK: Clock

  @Test func `clocks that the device calls different are a problem, of the clock alone`() throws {
    let check = ClockCheck()
    var report = report(peers: [peer("laptop", offset: -59_000), peer("phone", offset: 12)])
    let good = check.findings(.init(isSynchronised: true), of: running(report))
    #expect(good.map(\.verdict) == [.good, .good])
    #expect(good[1].seen == "they differ by 59,000 ms at most")
    for code in [KithError.Code.clocksDiffer, .dataAhead] {
      report.problems = [
        .init(name: code.description, message: "Wrong\u{1B}.", device: nil, path: nil)
      ]
      let wrong = check.findings(.init(isSynchronised: false), of: running(report))
      #expect(wrong.map(\.verdict) == [.note, .problem])
      #expect(wrong[1].advice?.hasPrefix("Wrong") == true)
      #expect(wrong[1].advice?.contains("\u{1B}") == false)
      #expect(
        DirectoryCheck().findings(.init(isUnderPassphrase: true), of: running(report)).map(
          \.verdict) == [.good])
    }
  }

  @Test(
    arguments: [
      (61_000, "61 s"), (119_499, "119 s"), (119_500, "2 min"), (3_599_999, "60 min"),
      (7_170_000, "2 h"), (10_799_000, "3 h"), (10_200_000, "2 h 50 min"),
      (172_769_999, "47 h 59 min"),
      (172_770_000, "2 days"), (180_000_000, "2 days 2 h"),
    ] as [(Int64, String)])
  func `a difference of clocks is rounded, not cut off`(offset: Int64, words: String) {
    #expect(NodeStatus.clockText(offset) == "\(words) ahead")
    #expect(NodeStatus.clockText(-offset) == "\(words) behind")
  }

  // MARK: Network

  @Test func `a host without an address is a problem, unless its node needs none`() throws {
    func interface(_ name: String, hasCarrier: Bool = true) -> LinkInterface {
      LinkInterface(
        index: 2, name: name, isLoopback: false, hasCarrier: hasCarrier, supportsMulticast: true)
    }
    let check = NetworkCheck()
    let stopped = target(.none)
    let good = check.findings(
      [interface("eth0"), interface("wlan0", hasCarrier: false)], of: stopped)
    #expect(good.map(\.verdict) == [.good] && good[0].seen == "this host has an address on eth0")
    let pulled = check.findings([interface("eth0", hasCarrier: false)], of: stopped)
    #expect(pulled.map(\.verdict) == [.problem] && pulled[0].seen.contains("connected (eth0)"))
    let none = check.findings([], of: stopped)
    #expect(none.map(\.verdict) == [.problem] && none[0].seen == "no interface has an address")
    let everywhere = check.findings([], of: running(report(listening: ["[::]:4114"])))
    #expect(everywhere.map(\.verdict) == [.problem])
    let local = report(listening: ["127.0.0.1:4114", "[::1]:4114"])
    #expect(check.findings([], of: running(local)).map(\.verdict) == [.note])
    var stick = report(listening: ["[::]:4114"])
    stick.carriers = [NodeStatus.Carrier(kind: "folder", location: "/nas", isShared: false)]
    #expect(check.findings([], of: running(stick)).map(\.verdict) == [.note])
    stick.carriers[0].problem = "The folder is not there."
    #expect(check.findings([], of: running(stick)).map(\.verdict) == [.problem])
  }

  @Test func `a clock that is behind its own files is a problem`() {
    for (ahead, count) in [(60_000, 1), (60_001, 2)] as [(Int64, Int)] {
      let findings = ClockCheck().findings(
        .init(isSynchronised: true, filesAheadMilliseconds: ahead), of: target(.none))
      #expect(findings.count == count)
      #expect(findings.count { $0.verdict == .problem } == count - 1)
    }
  }

  // MARK: Disk

  @Test func `a disk has room, takes writes, and keeps them`() {
    func verdicts(_ sight: DiskCheck.Sight) -> [Finding.Verdict] {
      DiskCheck().findings(sight, of: target(.none)).map(\.verdict)
    }
    let least = DiskCheck.leastFreeBytes
    #expect(
      verdicts(.init(freeBytes: least, kind: "ext4", writeSeconds: 0.001)) == [.good, .good, .good])
    #expect(
      verdicts(.init(freeBytes: least - 1, kind: "xfs", writeSeconds: 0.2)) == [
        .problem, .note, .good,
      ])
    #expect(verdicts(.init(freeBytes: 0, writeFailure: ENOSPC)) == [.problem, .problem])
    #expect(verdicts(.init(isReadOnly: true, writeFailure: EROFS)) == [.problem])
    for kind in ["tmpfs", "overlay", "nfs4", "fuse.sshfs"] {
      #expect(verdicts(.init(kind: kind, writeSeconds: 0)) == [.good, .note], "\(kind)")
    }
  }

  @Test func `the file system is the one that is mounted nearest and last`() {
    let table = """
      22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
      23 22 0:5 / /home rw - btrfs /dev/sdb rw
      24 22 0:6 / /home/a\\040b rw shared:1 - tmpfs none rw
      25 22 0:7 / /home rw - xfs /dev/sdc rw
      nonsense
      """
    #expect(MountTable.kind(of: "/home/a b/kith", in: table) == "tmpfs")
    #expect(MountTable.kind(of: "/home/ab", in: table) == "xfs")
    #expect(MountTable.kind(of: "/homely", in: table) == "ext4")
    #expect(MountTable.kind(of: "/home", in: "") == nil)
  }

  // MARK: Roster

  @Test func `a device that is away for a month may be lost`() throws {
    let check = RosterCheck()
    func findings(
      _ devices: [NodeStatus.Device], _ peers: [NodeStatus.Peer] = []
    ) -> [Finding] {
      check.findings((), of: running(report(devices: devices, peers: peers)))
    }
    let own = device("own", isSelf: true)
    #expect(findings([own]).map(\.verdict) == [.note])
    let near = device("near", isConnected: true)
    let session = peer("near")
    #expect(findings([own, near], [session]).map(\.verdict) == [.good])
    let away = device("away", seen: Self.now - 29 * Self.day)
    let lost = device("lost", issued: Self.now - 31 * Self.day)
    let three = findings([own, near, away, lost], [session])
    #expect(three.map(\.verdict) == [.good, .note, .note])
    #expect(three[1].seen == "last seen 29 days ago")
    #expect(three[2].advice?.contains("kith devices revoke") == true)
    #expect(findings([own, away]).map(\.verdict) == [.problem, .note])
    let phantom = device("phantom", wasSeen: false)
    let never = findings([own, near, phantom], [session])
    #expect(never.map(\.verdict) == [.good, .note] && never[1].seen.hasPrefix("never seen"))
    #expect(never[1].advice?.contains("kith devices revoke") == true)
    // As in `status`: a device that exchanges nothing, or was not heard, is not connected.
    let idle = findings([own, near], [peer("near", isExchanging: false)])
    #expect(idle.map(\.verdict) == [.problem, .note] && idle[0].seen == "0 of 1 connected")
    #expect(idle[1].seen == "connected, not exchanging")
    let silent = device("near", isConnected: true, seen: Self.now - 41_000)
    let unheard = findings([own, silent], [session])
    #expect(unheard[0].seen == "0 of 1 connected" && unheard[1].seen == "silent for 41 s")
    let stopped = check.findings((), of: target(.opened(report(devices: [own, near]))))
    #expect(stopped.map(\.verdict) == [.problem] && stopped[0].advice?.contains("kith run") == true)
    let single = check.findings((), of: target(.opened(report(devices: [own]))))
    #expect(single.map(\.verdict) == [.note])
    let blind = check.findings((), of: target(.failed(KithError(.damaged, ""))))
    #expect(blind.map(\.verdict) == [.unknown])
  }

  @Test func `few devices may be off for some days, unless a sign says that they are on`() {
    let check = RosterCheck()
    func verdict(
      _ devices: [NodeStatus.Device], heard: [(String, UInt64)] = [], hasCarrier: Bool = false
    ) -> Finding.Verdict? {
      var status = report(devices: [device("own", isSelf: true)] + devices)
      status.discovery = .init(
        links: [],
        neighbours: heard.map { .init(device: id($0.0), addresses: [], milliseconds: $0.1) },
        sent: 1, ignored: 0)
      if hasCarrier {
        status.carriers = [NodeStatus.Carrier(kind: "folder", location: "/nas", isShared: false)]
      }
      return check.findings((), of: running(status)).first?.verdict
    }
    let off = device("off", seen: Self.now - 6 * Self.day)
    let long = device("long", seen: Self.now - 7 * Self.day)
    #expect(verdict([off]) == .note && verdict([long]) == .problem)
    #expect(verdict([off, device("other")]) == .note && verdict([off, long]) == .problem)
    #expect(verdict([off, device("other"), device("third")]) == .problem)
    #expect(verdict([off, device("other"), device("third")], hasCarrier: true) == .note)
    #expect(verdict([device("never", wasSeen: false)]) == .problem)
    var late = device("late")
    late.behindSinceMilliseconds = Self.now - 8 * Self.day
    #expect(verdict([late]) == .problem)
    // Its beacons come, and no session.
    #expect(verdict([off], heard: [("off", 1_000)]) == .problem)
    #expect(verdict([off], heard: [("other", 1_000)]) == .note)
    // It went off right after its last beacon.
    let fresh = device("fresh", seen: Self.now - 10_000)
    #expect(verdict([fresh], heard: [("fresh", 12_000)]) == .note)
    #expect(verdict([fresh], heard: [("fresh", 0)]) == .note)
  }

  @Test func `a device that is cut off is told why, unless a carrier works`() {
    let check = RosterCheck()
    let (own, away) = (device("own", isSelf: true), device("away", seen: Self.now - 5_000))
    var status = report(devices: [own, away])
    var call = NodeStatus.Address(address: "192.0.2.7:4114", source: .remembered, device: away.id)
    (call.triedMilliseconds, call.outcome) = (Self.now - 20_000, .noAnswer)
    var typo = NodeStatus.Address(address: "typo.invalid:4114", source: .named)
    (typo.outcome, typo.reason) = (.unknownHost, "no address is known for typo.invalid\u{1B}")
    status.addresses = [typo, call]
    let findings = check.findings((), of: running(status))
    #expect(findings.map(\.verdict) == [.note, .note, .note])
    #expect(findings[0].advice?.hasPrefix("if one is on: see that a node runs there") == true)
    #expect(findings[1].seen == "last seen 5 s ago; 192.0.2.7:4114: no answer (20 s ago)")
    #expect(findings[1].advice?.contains("TCP port 4114") == true)
    #expect(findings[2].seen == "no address is known for typo.invalid\\u{1b}")
    #expect(findings[2].advice?.contains("kith devices forget typo.invalid:4114") == true)
    status.carriers = [NodeStatus.Carrier(kind: "folder", location: "/nas", isShared: false)]
    #expect(check.findings((), of: running(status)).map(\.verdict) == [.note, .note, .note])
    status.carriers = []
    status.problems = [.init(name: "clocksDiffer", message: "Wrong.", device: nil, path: nil)]
    #expect(check.findings((), of: running(status))[0].advice?.contains("clock") == true)
  }

  @Test func `other versions are worth a note`() {
    let check = VersionsCheck()
    #expect(check.findings((), of: target(.none)).map(\.verdict) == [.good])
    var (laptop, phone) = (device("laptop"), device("phone"))
    laptop.software = Software.version
    let same = check.findings((), of: running(report(devices: [laptop, phone])))
    #expect(same.map(\.verdict) == [.good] && same[0].tried.contains("1 other device"))
    phone.software = "9.9\u{1B}[2J"
    let findings = check.findings((), of: running(report(devices: [laptop, phone])))
    #expect(findings.map(\.verdict) == [.note])
    #expect(findings[0].tried.contains("phone") && !findings[0].seen.contains("\u{1B}"))
  }

  @Test func `links hear themselves or not`() {
    let links = [
      MulticastCheck.Link(
        link: .init(interface: "lo", isLoopback: true, family: "IPv4"), isHeard: true),
      MulticastCheck.Link(
        link: .init(interface: "eth0", family: "IPv6", problem: "denied"), isHeard: false),
      MulticastCheck.Link(link: .init(interface: "eth1", family: "IPv4"), isHeard: false),
    ]
    let findings = MulticastCheck().findings(links, of: target(.none))
    #expect(findings.map(\.verdict) == [.good, .note, .note])
    #expect(findings[1].seen == "denied" && findings[2].seen == "nothing came back")
    #expect(MulticastCheck().findings([], of: target(.none)).map(\.verdict) == [.note])
    // Loopback says nothing of networks.
    let alone = MulticastCheck().findings([links[0]], of: target(.none))
    #expect(alone.map(\.verdict) == [.note, .good])
    #expect(alone[0].seen == "there are none but within this host")
  }

  // MARK: Firewall

  @Test func `a firewall lets the port in, keeps it out, or cannot be seen`() {
    func verdicts(_ sight: FirewallCheck.Sight) -> [Finding.Verdict] {
      FirewallCheck().findings(sight, of: target(.none)).map(\.verdict)
    }
    #expect(verdicts(.init()) == [.good])
    #expect(verdicts(.init(ufw: false)) == [.good])
    #expect(verdicts(.init(hasKernelRules: true)) == [.note])
    #expect(verdicts(.init(hasKernelRules: nil)) == [.unknown])
    for (allows, verdict) in [(true, .good), (false, .note), (nil, .note)]
      as [(Bool?, Finding.Verdict)]
    {
      #expect(verdicts(.init(ufw: true, ufwAllows: allows, hasKernelRules: true)) == [verdict])
      #expect(verdicts(.init(isFirewalldRunning: true, firewalldAllows: allows)) == [verdict])
    }
  }

  @Test func `rules of firewalls are understood`() {
    #expect(FirewallCheck.isSwitchedOn("# ENABLED=yes\nENABLED=no\n") == false)
    #expect(FirewallCheck.isSwitchedOn("LOGLEVEL=low\nENABLED = Yes\n"))
    let rules = """
      ### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
      -A ufw-user-input -p tcp --dport 22 -j ACCEPT
      -A ufw-user-input -p tcp -m multiport --dport 4100:4200 -j ACCEPT
      -A ufw-user-input -p udp --dport 5000 -j ACCEPT
      -A ufw-user-input -p tcp --dport 6000 -j DROP
      """
    for (port, isAllowed) in [(22, true), (4114, true), (5000, false), (6000, false), (80, false)]
      as [(UInt16, Bool)]
    {
      #expect(FirewallCheck.ufwAllows(port, rules: rules) == isAllowed, "\(port)")
    }
    let zone = #"<zone><port protocol="tcp" port="4114"/><port port="53" protocol="udp"/></zone>"#
    #expect(FirewallCheck.firewalldAllows(4114, zone: zone))
    #expect(!FirewallCheck.firewalldAllows(53, zone: zone))
    let builtIn = "kernel/net/netfilter/nf_tables.ko\nkernel/fs/ext4/ext4.ko\n"
    for (modules, builtIn, hasRules) in [
      ("nf_tables 303104 12 nft_ct, Live 0x0\n", nil, true),
      ("nf_tables 303104 0 - Live 0x0\nxt_tables 1 5 - Live 0x0\n", nil, false),
      ("ext4 1 5 - Live 0x0\n", builtIn, nil), ("ext4 1 5 - Live 0x0\n", nil, false),
      ("ext4 1 5 - Live 0x0\n", "kernel/fs/xfs/xfs.ko\n", false), (nil, builtIn, nil),
      (nil, nil, nil), ("", nil, nil),
    ] as [(String?, String?, Bool?)] {
      #expect(FirewallCheck.hasRules(modules: modules, builtIn: builtIn) == hasRules)
    }
  }

  // MARK: Report

  @Test func `a report says what to do below what was seen`() {
    let report = DoctorReport(findings: [
      Finding(check: "port", verdict: .problem, tried: "tried", seen: "taken", advice: "stop it"),
      Finding(check: "disk", verdict: .good, tried: "wrote", seen: "1 ms", advice: nil),
    ])
    #expect(!report.isHealthy && report.problems == 1)
    #expect(
      report.text(.plain) == """
        problem  port  tried: taken
                       → stop it
        ok       disk  wrote: 1 ms
        """)
    let json = report.document.text(indented: false)
    #expect(json.contains(#""healthy":false"#) && json.contains(#""verdict":"problem""#))
  }
}
