import Kith
import Testing

@testable import KithCommands
@testable import KithCore

@Suite("Why sync gave up")
struct SyncShortfallTests {
  private let store = StoreIdentifier("default")!
  private let b = Self.id(11)
  private let c = Self.id(12)

  private static func id(_ byte: UInt8) -> DeviceID {
    DeviceID { $0.copyBytes(from: repeatElement(byte, count: 32)) }
  }

  /// The status of a device with two others, `b` and `c`, that are away.
  private var status: NodeStatus {
    var status = NodeStatus(account: nil, device: Self.id(10))
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
