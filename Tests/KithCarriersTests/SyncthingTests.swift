internal import Foundation
import Kith
import KithTestSupport
import Testing

@testable import KithCarriers

/// Two folders on two computers, which are network namespaces, kept equal by Syncthing.
@Suite(
  .enabled(if: getuid() == 0, "only root may make network namespaces"),
  .enabled(if: isInstalled("syncthing"), "Debian's syncthing is missing"),
  .timeLimit(.minutes(2)))
struct SyncthingTests {
  // The script ends before its directory is removed.
  private let script: ScriptProcess
  private let directory: TestDirectory
  private let one: FolderCarrier
  private let two: FolderCarrier
  private let place = freshPlace()

  init() async throws {
    directory = try TestDirectory()
    // All that a run leaves on the host begins with its name: Tests/support.sh.
    let run = ProcessInfo.processInfo.environment["KITH_RUN"] ?? "0"
    script = try await ScriptProcess(
      "syncthing.py", [directory.path, "kith-\(run)-\(place.suffix(6))-"])
    one = FolderCarrier(path: directory.child("one"))
    two = FolderCarrier(path: directory.child("two"))
  }

  @Test func objectsTravelWholeThroughACutLink() async throws {
    try await one.makePlace(place)
    let sizes = ["aa": 0, "bb": 5_000, "cc": 4 << 20]
    for (name, count) in sizes {
      try await one.put([UInt8](repeating: 7, count: count), as: name, in: place)
    }
    try await waitForListing(of: two, sizes)
    var events = try #require(two.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() != nil)

    try await script.command("cut")
    try await one.put([1], as: "dd", in: place)
    try await two.put([2], as: "ee", in: place)
    try await two.delete("cc", from: place)
    try await script.command("join")
    let merged = ["aa": 0, "bb": 5_000, "dd": 1, "ee": 1]
    try await waitForListing(of: one, merged, also: ["cc": 4 << 20])
    try await waitForListing(of: two, merged, also: ["cc": 4 << 20])
    #expect(await events.next() != nil)
    #expect(try await two.get("dd", from: place, limit: 1) == [1])
  }

  /// Waits for a listing. Until then each listing has whole objects only.
  private func waitForListing(
    of carrier: FolderCarrier, _ expected: [String: Int], also old: [String: Int] = [:]
  ) async throws {
    let whole = expected.merging(old) { one, _ in one }
    try await eventually("the folders to be equal", every: 20) {
      let listed: [CarrierObject]
      do throws(CarrierFailure) {
        listed = try await carrier.list(place, limit: 100)
      } catch {
        // The directories have not come yet.
        guard error.code == .notThere else { throw error }
        return false
      }
      for object in listed { #expect(whole[object.name] == object.bytes) }
      return Dictionary(uniqueKeysWithValues: listed.map { ($0.name, $0.bytes) }) == expected
    }
  }
}
