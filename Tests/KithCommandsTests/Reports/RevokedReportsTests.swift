import KithCore
import KithTerminal
import Testing

@testable import Kith
@testable import KithCommands

/// A revoked device blames neither the network nor a limit.
@Suite("Reports of a revoked device")
struct RevokedReportsTests {
  private static let status = {
    var status = NodeStatus(account: nil, device: .test(10))
    status.isRevoked = true
    status.processID = 7
    var own = NodeStatus.Device(id: .test(10), name: "laptop")
    own.isThisDevice = true
    own.isMember = false
    own.enroller = .creation
    var other = NodeStatus.Device(id: .test(11), name: "desktop")
    other.wasSeen = false
    var call = NodeStatus.Address(address: "192.0.2.7:4114", source: .named, device: .test(11))
    (call.triedMilliseconds, call.outcome) = (1_000_000, .failed)
    call.reason = "this device was revoked, and calls no other"
    status.devices = [own, other]
    status.addresses = [call]
    return status
  }()

  @Test func `the devices are listed with what happened to this one, and no other advice`() {
    let text = DevicesReport(status: Self.status, nowMilliseconds: 1_000_000).text(.plain)
    #expect(text.contains("\nlaptop   this device"), "\(text)")
    #expect(text.contains("192.0.2.7:4114: this device was revoked, and calls no other (now)\n"))
    #expect(text.hasSuffix("\n\n" + KithError.revokedDevice.message), "\(text)")
    #expect(!text.contains("Never seen") && !text.contains("kith devices forget"), "\(text)")
  }

  @Test func `the doctor looks at no network and no carrier, and gives no advice on them`() {
    let names = DoctorReport.checks(isRevoked: true).map { type(of: $0).name }
    #expect(names == ["directory", "disk", "clock", "roster", "versions"])
    #expect(DoctorReport.checks(isRevoked: false).count == names.count + 5)
    for device in [DiagnosisTarget.Device.running(Self.status), .opened(Self.status)] {
      let target = DiagnosisTarget(
        directory: "/d", port: 4114, nowMilliseconds: 1_000_000, device: device)
      let roster = RosterCheck().findings((), of: target)
      #expect(roster.map(\.verdict) == [.note] && roster[0].advice == nil, "\(roster)")
      #expect(roster[0].seen.contains("revoked"))
      let directory = DirectoryCheck().findings(.init(), of: target)
      #expect(!directory.contains { $0.advice?.contains("kith run") == true }, "\(directory)")
    }
  }

  /// `account leave` removed them without a word.
  @Test func `its unpublished writes are named before they are lost, with the way to keep them`()
    throws
  {
    var status = Self.status
    var store = NodeStatus.Store(
      identifier: try #require(StoreIdentifier("com.example.Editor")),
      usage: .init(bytes: 1, keys: 1, policy: .standard))
    store.drafts = 2
    status.stores = [store]
    #expect(
      AccountLeaveCommand.lost(status) == [
        "No other device has the last writes in the store \"com.example.Editor\" (2): this one was "
          + "revoked, so to keep them run kith export --store com.example.Editor >FILE first."
      ])
    status.isRevoked = false
    #expect(AccountLeaveCommand.lost(status)[0].hasSuffix("run kith run and kith sync first."))
    status.stores[0].drafts = 0
    #expect(AccountLeaveCommand.lost(status).isEmpty)
  }
}
