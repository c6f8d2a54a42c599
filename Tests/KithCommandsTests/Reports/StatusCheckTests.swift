import Kith
import KithCore
import KithCrypto
import Testing

@testable import KithCommands

@Suite("kith status --check")
struct StatusCheckTests {
  private static let (now, hour): (UInt64, UInt64) = (1_795_000_000_000, 3_600_000)

  private static func id(_ byte: UInt8) -> DeviceID {
    DeviceID { $0.copyBytes(from: repeatElement(byte, count: 32)) }
  }

  /// The status of a node with two others, of which one is connected.
  private var status: NodeStatus {
    var status = NodeStatus(account: AccountID(Digest256 { $0[0] = 1 }), device: Self.id(10))
    status.processID = 7
    status.devices = [.init(id: Self.id(11), name: "b"), .init(id: Self.id(12), name: "c")]
    status.devices[0].isConnected = true
    status.devices[0].lastSeenMilliseconds = Self.now
    status.peers = [
      .init(device: Self.id(11), address: "192.0.2.1:4114", isDialled: true, isExchanging: true)
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
    var silent = status
    silent.devices[0].lastSeenMilliseconds = Self.now - 41_000
    #expect(text(silent).hasPrefix("problem: 0 of 2"))
    var single = status
    single.devices = []
    #expect(text(single) == "ok: the account has no other device yet")
    var signedOut = status
    signedOut.account = nil
    #expect(text(signedOut).hasPrefix("problem: nobody is signed in"))
    #expect(StatusCheck(failure: "no node runs here.").text(.plain) == "problem: no node runs here")
  }

  @Test func `problems of the device, and devices that are late, are named`() {
    var late = status
    late.devices[0].behindSinceMilliseconds = Self.now - 1_000
    late.devices[1].behindSinceMilliseconds = Self.now - 3 * Self.hour
    #expect(text(late) == "ok: 1 of 2 connected")
    #expect(text(late, behind: Self.hour) == "problem: behind: c (since 3 h ago)")
    #expect(text(late, behind: 4 * Self.hour) == "ok: 1 of 2 connected")
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
