import Kith
import KithCrypto
import Testing

@testable import KithCommands
@testable import KithCore

@Suite("kith status --check")
struct StatusCheckTests {
  private static let (now, hour): (UInt64, UInt64) = (1_795_000_000_000, 3_600_000)

  /// The status of a node with two others, of which one is connected.
  private var status: NodeStatus {
    var status = NodeStatus(account: AccountID(Digest256 { $0[0] = 1 }), device: .test(10))
    status.processID = 7
    status.devices = [.init(id: .test(11), name: "b"), .init(id: .test(12), name: "c")]
    status.devices[0].isConnected = true
    status.devices[0].lastSeenMilliseconds = Self.now
    status.peers = [
      .init(device: .test(11), address: "192.0.2.1:4114", isDialled: true, isExchanging: true)
    ]
    return status
  }

  private func text(
    _ status: NodeStatus, peers: Int? = nil, behind: UInt64? = nil
  ) -> String {
    StatusCheck(status, peers: peers, behind: behind, nowMilliseconds: Self.now).text(.plain)
  }

  @Test func `a node that is connected is well, and one that is cut off is not`() {
    #expect(text(status) == "ok: 1 of 2 connected")
    #expect(text(status, peers: 2) == "problem: 1 of 2 connected, and 2 are wanted")
    var alone = status
    alone.peers[0].isExchanging = false
    #expect(text(alone) == "problem: 0 of 2 connected")
    #expect(text(alone, peers: 0) == "ok: 0 of 2 connected")
    alone.carriers = [.init(kind: "folder", location: "/nas", isShared: false)]
    #expect(text(alone) == "ok: 0 of 2 connected")
    alone.carriers[0].problem = "It is\u{1B} not there."
    #expect(text(alone) == "problem: 0 of 2 connected; /nas: It is\\u{1b} not there")
    // A carrier above the limit is a setting that does nothing.
    var crowded = status
    crowded.carriers = (1...5).map { .init(kind: "folder", location: "/\($0)", isShared: false) }
    crowded.carriers[4].problem = "It is not used."
    #expect(text(crowded) == "ok: 1 of 2 connected")
    crowded.carriers[3].problem = "It is not there."
    #expect(text(crowded) == "problem: /4: It is not there")
    var silent = status
    silent.devices[0].lastSeenMilliseconds = Self.now - 41_000
    #expect(text(silent).hasPrefix("problem: 0 of 2"))
    var single = status
    single.devices = []
    #expect(text(single) == "ok: the account has no other device yet")
    var signedOut = status
    signedOut.account = nil
    #expect(text(signedOut).hasPrefix("problem: nobody is signed in"))
    #expect(
      StatusCheck(failures: ["no node runs here."]).text(.plain) == "problem: no node runs here")
  }

  @Test func `problems of the device, and devices that are late, are named`() {
    var late = status
    late.devices[0].behindSinceMilliseconds = Self.now - 1_000
    late.devices[1].behindSinceMilliseconds = Self.now - 3 * Self.hour
    #expect(text(late) == "ok: 1 of 2 connected")
    #expect(text(late, behind: Self.hour) == "problem: behind: c (since 3 h ago)")
    #expect(text(late, behind: 4 * Self.hour) == "ok: 1 of 2 connected")
    // After a restart nothing is known of a device that is away, which is no problem.
    late.devices[1].behindSinceMilliseconds = nil
    late.devices[1].name = "c\u{1B}"
    #expect(
      text(late, behind: Self.hour)
        == "ok: 1 of 2 connected; not known since the node started: c\\u{1b}")
    #expect(text(late) == "ok: 1 of 2 connected")
    var full = status
    full.problems = [.init(name: "diskFull", message: "Full.", device: nil, path: "/d")]
    #expect(text(full) == "problem: /d: Full")
    let json = StatusCheck(full, peers: nil, behind: nil, nowMilliseconds: Self.now).document
      .text(indented: false)
    #expect(
      json == #"{"connected":1,"healthy":false,"others":2,"problems":["/d: Full"],"version":1}"#)
  }

  @Test func `times are read as people write them`() {
    for (text, seconds) in [
      ("90", 90), ("90s", 90), ("30m", 1_800), ("30min", 1_800), ("1h", 3_600), ("2d", 172_800),
      ("0", 0),
    ] as [(String, UInt64)] {
      #expect(TimeSpan(argument: text)?.milliseconds == seconds * 1_000, "\(text)")
    }
    for text in ["", "h", "1w", "-1h", "1.5h", "4000d", "99999999999999999999s", "٣h"] {
      #expect(TimeSpan(argument: text) == nil, "\(text)")
    }
  }
}

@Suite("Why sync gave up")
struct SyncShortfallTests {
  private let store = StoreIdentifier("default")!
  private let b = DeviceID.test(11)
  private let c = DeviceID.test(12)

  /// The status of a device with two others, `b` and `c`, that are away.
  private var status: NodeStatus {
    var status = NodeStatus(account: nil, device: .test(10))
    status.devices = [.init(id: b, name: "b"), .init(id: c, name: "c")]
    status.stores = [
      .init(identifier: store, usage: .init(bytes: 1, keys: 1, policy: .standard))
    ]
    return status
  }

  private func reason(
    _ status: NodeStatus, complete: [DeviceID] = [], lacking: [DeviceID], wanted: Int? = nil,
    isUnpublished: Bool = false
  ) -> String {
    SyncShortfall(
      report: SyncReport(
        complete: complete, incomplete: lacking, hasUnpublishedWrites: isUnpublished),
      status: status, store: store, wanted: wanted, nowMilliseconds: 20_000
    ).description
  }

  @Test func `devices that are away or slow are named, and what to do`() {
    var status = status
    #expect(reason(status, lacking: [b]) == "b is not connected; start its node with: kith run")
    #expect(reason(status, lacking: [b, c]).contains("b, c are not connected; start their nodes"))
    #expect(reason(status, lacking: [b], isUnpublished: true).contains("wait for a peer"))
    var call = NodeStatus.Address(address: "192.0.2.1:4114", source: .remembered, device: b)
    (call.triedMilliseconds, call.outcome) = (10_000, .noAnswer)
    status.addresses = [call]
    #expect(
      reason(status, lacking: [b, c]).hasSuffix("; 192.0.2.1:4114: no answer (10 s ago)"))
    status.devices[0].isConnected = true
    #expect(reason(status, lacking: [b]).contains("b does not have everything yet; wait longer"))
    #expect(reason(status, lacking: []).contains("kith invite"))
    #expect(
      reason(status, complete: [b], lacking: [c], wanted: 5)
        .contains("5 other devices are asked for, and the account has 2"))
  }

  @Test func `if waiting never helps, it says what does`() {
    var clocks = status
    clocks.devices[0].isConnected = true
    clocks.clock.differences = [
      .init(device: b, milliseconds: 10_800_000, outcome: .neitherSynchronised)
    ]
    #expect(
      reason(clocks, lacking: [b], isUnpublished: true)
        == "the writes of this device wait for a peer to be published; the clocks of b and this "
        + "device differ, b's is 3 h ahead, so stores are not exchanged; see: kith clock")
    var limits = status
    limits.devices[1].isConnected = true
    limits.stores[0].policyMismatches = [c]
    let both = reason(limits, lacking: [b, c])
    #expect(both.contains("c has other limits for the store") && !both.contains("wait longer"))
    #expect(both.contains("b is not connected"))
    for code in [KithError.Code.revoked, .tooManyIncarnations, .dataAhead, .diskFull] {
      var stuck = status
      stuck.problems = [
        .init(name: code.description, message: "It\u{1B} is so.", device: nil, path: nil)
      ]
      #expect(reason(stuck, lacking: [b], isUnpublished: true) == "It\\u{1b} is so")
    }
  }

  @Test func `carriers count only if no number of devices is asked for`() {
    var status = status
    status.carriers = [
      .init(kind: "folder", location: "/nas", isShared: false),
      .init(kind: "folder", location: "/usb", isShared: false),
    ]
    status.carriers[1].problem = "The folder is not there."
    #expect(
      reason(status, lacking: [b]).hasSuffix(
        "; /nas does not hold it yet; wait longer with --timeout; /usb: The folder is not there"))
    #expect(!reason(status, lacking: [b, c], wanted: 1).contains("/nas"))
  }
}
