internal import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCarriers

@Suite(.timeLimit(.minutes(1)))
struct FolderChangesTests {
  private let directory: TestDirectory
  private let carrier: FolderCarrier
  private let place = freshPlace()

  init() throws {
    directory = try TestDirectory()
    carrier = FolderCarrier(path: directory.path)
  }

  private var placePath: String { directory.child(place) }

  @Test func anObjectIsAnEvent() async throws {
    try await carrier.makePlace(place)
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() != nil)
    for index in 0..<3 {
      // As another process would.
      try Data([1]).write(to: URL(filePath: "\(placePath)/a\(index)"))
      #expect(await events.next() != nil)
    }
    try await carrier.delete("a1", from: place)
    #expect(await events.next() != nil)
  }

  @Test func theStreamEndsWithItsPlace() async throws {
    try await carrier.makePlace(place)
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() != nil)
    try FileManager.default.removeItem(atPath: placePath)
    while await events.next() != nil {}
  }

  @Test func withoutAPlaceTheStreamEnds() async throws {
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() == nil)
    #expect(carrier.changes(in: "../x") == nil)
  }

  @Test func `a descriptor of which no channel can be made is closed, and the stream ends`()
    async throws
  {
    // NIO takes no files.
    let descriptor = open("/proc/self/exe", O_RDONLY)
    var (file, after) = (stat(), stat())
    try #require(fstat(descriptor, &file) == 0)
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    FolderChanges.read(descriptor, continuation)
    for await () in stream {}
    // Another thread may have got the number.
    #expect(fstat(descriptor, &after) != 0 || after.st_ino != file.st_ino)
  }

  @Test func aStreamThatNobodyReadsLeavesNothingOpen() async throws {
    try await carrier.makePlace(place)
    for index in 0..<20 {
      let stream = try #require(carrier.changes(in: place))
      let task = Task {
        // Half of them are dropped before the watch begins, half after.
        for await _ in stream where index.isMultiple(of: 2) { return }
      }
      if !index.isMultiple(of: 2) { task.cancel() }
      await task.value
    }
    // Other tests of this process watch other directories.
    let inode = try #require(
      FileManager.default.attributesOfItem(atPath: placePath)[.systemFileNumber] as? Int)
    let watch = "ino:\(String(inode, radix: 16)) "
    try await eventually("the watches to be closed", seconds: 10) {
      let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo")
      return !files.contains { file in
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\(file)", encoding: .utf8)
        return text?.contains(watch) == true
      }
    }
  }
}

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
