import KithCrypto
import Testing

@testable import KithCore

/// The changes that programs are told, and their reasons (`Docs/Protocol/drafts.md`).
@Suite struct ReasonTests {
  private let small = Policy(totalBytes: 1_000, keys: 8)

  /// Notified changes of a device: reason, keys that show something new, keys that show nothing any
  /// more.
  private func notified(_ index: Int, in world: TestWorld) -> [[String]] {
    world.devices[index].viewChanges.compactMap { change in
      guard let reason = change.reason else { return nil }
      return [reason.rawValue]
        + change.changes.map { ($0.value == nil ? "-" : "+") + $0.key.text }
        + change.superseded.map { "!" + $0.text }
    }
  }

  /// Two devices of which the first has claimed room, and the second, a little later, more than is
  /// left; neither knew of the other.
  private func overfilled(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed, policy: small)
    world.connectAll()
    world.settle()
    world.write([set("early", blob(600))], on: 0)
    world.now.wallMilliseconds += 5
    world.write([set("late", blob(600))], on: 1)
    for device in world.devices { device.viewChanges = [] }
    world.settle()
    world.checkConvergence("overfilled")
    return world
  }

  @Test func `another's write is a server change, and the value that it hides is the quota's`()
    throws
  {
    let world = try overfilled(seed: 110)
    #expect(
      notified(1, in: world) == [["externalChange", "+early"], ["quotaViolationChange", "-late"]])
    // The first never showed the other's, so nothing has changed for it.
    #expect(notified(0, in: world) == [])
  }

  @Test func `a value shown again because another made room is the quota's change`() throws {
    let world = try overfilled(seed: 111)
    for device in world.devices { device.viewChanges = [] }
    world.write([remove("early")], on: 0)
    world.settle()
    #expect(notified(0, in: world) == [["quotaViolationChange", "+late"]])
    #expect(
      notified(1, in: world) == [["externalChange", "-early"], ["quotaViolationChange", "+late"]])
  }

  @Test func `a draft that is refused when it meets others is the quota's change`() throws {
    let world = try TestWorld(devices: 3, seed: 112, policy: small)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("mine", blob(600)), set("with it", 1)], on: 2)
    world.connect(0, 1)
    world.settle()
    world.write([set("theirs", blob(600))], on: 0)
    world.settle()
    world.devices[2].viewChanges = []
    world.connect(1, 2)
    world.settle()
    #expect(
      notified(2, in: world) == [
        ["externalChange", "+theirs"],
        ["quotaViolationChange", "-mine", "-with it", "!mine", "!with it"],
      ])
    world.checkConvergence("refused")
  }

  @Test func `other limits are the quota's change`() throws {
    let world = try TestWorld(devices: 1, seed: 113, policy: small)
    world.connectAll()
    world.write([set("a", blob(400))], on: 0)
    world.write([set("b", blob(400))], on: 0)
    world.devices[0].viewChanges = []
    world.perform(.open(TestWorld.store, Policy(totalBytes: 500)), on: 0)
    #expect(notified(0, in: world) == [["quotaViolationChange", "-b", "!b"]])
    world.checkInvariants("other limits")
  }

  @Test func `adoption is told as the first sync, with what lost in it`() throws {
    let world = try TestWorld(devices: 1, seed: 114)
    world.write([set("theme", "dark"), set("size", 12)], on: 0)
    try world.join()
    world.devices[1].viewChanges = []
    let writes = [[set("theme", "default")], [set("mine", 1)]].enumerated().map { number, write in
      LocalWrite(
        clock: HybridTime(milliseconds: TestWorld.origin + UInt64(number)), operations: write)
    }
    world.perform(.adopt(WriteID(rawValue: 9_999), TestWorld.store, writes), on: 1)
    #expect(notified(1, in: world) == [["initialSyncChange", "+mine", "!theme"]])
  }
}
