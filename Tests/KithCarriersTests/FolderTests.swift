internal import Foundation
import Kith
import KithCarriersTesting
import KithTestSupport
import Testing

@testable import KithCarriers

struct FolderTests {
  private let directory: TestDirectory
  private let carrier: FolderCarrier
  private let place = freshPlace()
  private var folder: String { directory.child("folder") }
  private var placePath: String { "\(folder)/\(place)" }

  init() throws {
    directory = try TestDirectory()
    carrier = FolderCarrier(path: directory.child("folder"))
  }

  @Test func conforms() async {
    let folder = folder
    let conformance = CarrierConformance(place: freshPlace) { FolderCarrier(path: folder) }
    await expectConformance(conformance)
  }

  @Test func filesOfOthersAreNoObjects() async throws {
    try await carrier.makePlace(place)
    try await carrier.put([1, 2], as: "aa", in: place)
    for name in [
      ".syncthing.bb.tmp", "~syncthing~bb.tmp", "aa.sync-conflict-20260101-120000-ABCDEFG",
      ".DS_Store",
      ".cc.tmp", "aa~", "aa.bak", "Thumbs.db", "aa (1)",
    ] {
      try Data([1]).write(to: URL(filePath: "\(placePath)/\(name)"))
    }
    try FileManager.default.createDirectory(
      atPath: "\(placePath)/dd", withIntermediateDirectories: false)
    #expect(try await carrier.list(place, limit: 1) == [CarrierObject(name: "aa", bytes: 2)])
    #expect(try await carrier.get("dd", from: place, limit: 10) == nil)
  }

  @Test func symbolicLinksLeadNowhere() async throws {
    try await carrier.makePlace(place)
    let secret = directory.child("secret")
    try Data([7]).write(to: URL(filePath: secret))
    try FileManager.default.createSymbolicLink(
      atPath: "\(placePath)/aa", withDestinationPath: secret)
    #expect(try await carrier.list(place, limit: 10) == [])
    #expect(try await carrier.get("aa", from: place, limit: 10) == nil)
    // A put replaces the link and not the file that it leads to.
    try FileManager.default.createSymbolicLink(
      atPath: "\(placePath)/.aa.tmp", withDestinationPath: secret)
    try await carrier.put([8], as: "aa", in: place)
    #expect(try Data(contentsOf: URL(filePath: secret)) == Data([7]))
    #expect(try await carrier.get("aa", from: place, limit: 10) == [8])
  }

  @Test func aPlaceThatIsALinkIsNotThere() async throws {
    try FileManager.default.createDirectory(
      atPath: "\(folder)/kith1", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: directory.child("elsewhere"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: placePath, withDestinationPath: directory.child("elsewhere"))
    await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 10) }
    await expectFailure(.notThere) { try await carrier.put([1], as: "aa", in: place) }
  }

  @Test func namedPipesAndSocketsDoNotBlock() async throws {
    try await carrier.makePlace(place)
    mkfifo("\(placePath)/aa", 0o600)
    #expect(try await carrier.list(place, limit: 10) == [])
    #expect(try await carrier.get("aa", from: place, limit: 10) == nil)
  }

  @Test func aFolderThatIsGoneIsNotThereAndNotEmpty() async throws {
    try await carrier.makePlace(place)
    try await carrier.put([1], as: "aa", in: place)
    try FileManager.default.moveItem(atPath: folder, toPath: directory.child("moved"))
    await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 10) }
    await expectFailure(.notThere) { try await carrier.put([1], as: "bb", in: place) }
    await expectFailure(.notThere) { _ = try await carrier.get("aa", from: place, limit: 10) }
    await expectFailure(.notThere) { try await carrier.delete("aa", from: place) }
    #expect(!FileManager.default.fileExists(atPath: folder))
    // An empty folder, as the mount point of a stick that was pulled out.
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 10) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
  }

  /// A mistyped path was made whole, also above a medium that was not mounted.
  @Test func onlyTheLastFolderIsMade() async throws {
    let deep = directory.child("nothing") + "/deep"
    await expectFailure(.notThere) { try await FolderCarrier(path: deep).makePlace(place) }
    #expect(!FileManager.default.fileExists(atPath: directory.child("nothing")))
    let failure = CarrierFailure(FolderFailure.noParent("/mnt/nsa"), "make the folder")
    #expect(failure.message.contains("no folder /mnt/nsa"))
    try await FolderCarrier(path: directory.child("made")).makePlace(place)
    #expect(FileManager.default.fileExists(atPath: directory.child("made") + "/" + place))
  }

  @Test func aFileInTheFoldersPlaceIsNamed() async throws {
    let file = directory.child("file")
    let link = directory.child("link")
    try Data().write(to: URL(filePath: file))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/nowhere")
    for (path, named) in [(file, file), (file + "/below", file), (link, link)] {
      do throws(CarrierFailure) {
        try await FolderCarrier(path: path).makePlace(place)
        Issue.record("\(path) was taken")
      } catch {
        #expect(error.message.hasPrefix("\(named) is a file, or a link"), "\(error.message)")
      }
    }
  }

  @Test func aDirectoryRemovedWhileItIsOpenIsNotThere() throws {
    let names = place.split(separator: "/").map(String.init)
    let held = try FolderPlace(path: folder, directories: names, creating: true)
    try held.checkIsThere()
    try FileManager.default.removeItem(atPath: placePath)
    #expect(throws: FolderFailure.self) { try held.checkIsThere() }
    // One of the same name is another.
    try FileManager.default.createDirectory(
      atPath: placePath, withIntermediateDirectories: false)
    #expect(throws: FolderFailure.self) { try held.checkIsThere() }
  }

  /// Every listing failed there.
  @Test func aFileSystemMayCountNoNames() {
    func directory(names: Int, node: Int, device: Int = 1) -> stat {
      var information = stat()
      information.st_nlink = numericCast(names)
      information.st_ino = numericCast(node)
      information.st_dev = numericCast(device)
      return information
    }
    let held = directory(names: 2, node: 7)
    #expect(FolderPlace.isSame(held, held))
    #expect(!FolderPlace.isSame(held, directory(names: 2, node: 8)))
    #expect(!FolderPlace.isSame(held, directory(names: 2, node: 7, device: 2)))
    let nameless = directory(names: 0, node: 7)
    #expect(!FolderPlace.isSame(nameless, held), "it was removed, and its number used again")
    #expect(FolderPlace.isSame(nameless, nameless), "a file system that counts none")
    #expect(!FolderPlace.isSame(nameless, directory(names: 0, node: 8)))
  }

  /// Linux has a file that fails as one with a bad sector does: the memory of a process, at 0.
  @Test func anObjectThatCannotBeReadIsNoMissingPlace() throws {
    let place = try FolderPlace(path: "/proc/\(getpid())", directories: [])
    #expect(throws: FolderFailure.unreadable("mem")) {
      _ = try place.read("mem", limit: 10, BlockingWork())
    }
    #expect(CarrierFailure(.unreadable("aa"), "read").code == .unexpected)
  }

  @Test func aPutThatBrokeOffIsReplaced() async throws {
    try await carrier.makePlace(place)
    try Data([9, 9]).write(to: URL(filePath: "\(placePath)/.aa.tmp"))
    try await carrier.put([1], as: "aa", in: place)
    #expect(try FileManager.default.contentsOfDirectory(atPath: placePath) == ["aa"])
  }

  @Test(.enabled(if: getuid() != 0, "root may write everywhere"))
  func aFolderWithoutPermissionIsDenied() async throws {
    try await carrier.makePlace(place)
    chmod(placePath, 0o500)
    defer { chmod(placePath, 0o700) }
    await expectFailure(.denied) { try await carrier.put([1], as: "aa", in: place) }
  }

  @Test(
    arguments: [
      (ENOENT, CarrierFailure.Code.notThere), (EIO, .notThere), (ENODEV, .notThere),
      (ESTALE, .notThere), (ENOSPC, .full), (EDQUOT, .full), (EACCES, .denied), (EROFS, .denied),
      (ETIMEDOUT, .unreachable), (EINVAL, .unexpected),
    ])
  func errorsHaveCodes(_ code: Int32, _ expected: CarrierFailure.Code) {
    #expect(CarrierFailure(.system(code), "write").code == expected)
  }
}

/// File systems of their own, which only root can mount.
@Suite(.enabled(if: getuid() == 0, "only root may mount a file system"))
struct FolderMountTests {
  private let directory: TestDirectory
  private let place = freshPlace()
  private var mount: String { directory.child("mount") }

  init() throws { directory = try TestDirectory() }

  /// Mounts a small file system in memory for the time of a body.
  private func withMount(
    _ options: String, _ body: (FolderCarrier) async throws -> Void
  ) async throws {
    try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: false)
    try #require(Glibc.mount("tmpfs", mount, "tmpfs", 0, options) == 0)
    defer { umount2(mount, Int32(MNT_DETACH)) }
    try await body(FolderCarrier(path: mount))
  }

  @Test func aFullFileSystemIsFull() async throws {
    try await withMount("size=1m") { carrier in
      try await carrier.makePlace(place)
      let bytes = [UInt8](repeating: 1, count: 700_000)
      try await carrier.put(bytes, as: "aa", in: place)
      await expectFailure(.full) { try await carrier.put(bytes, as: "bb", in: place) }
      // Nothing of it is left, and there is room again after a delete.
      #expect(try FileManager.default.contentsOfDirectory(atPath: "\(mount)/\(place)") == ["aa"])
      try await carrier.delete("aa", from: place)
      try await carrier.put(bytes, as: "bb", in: place)
    }
  }

  @Test func aReadOnlyFileSystemIsDenied() async throws {
    try await withMount("size=1m") { carrier in
      try await carrier.makePlace(place)
      try #require(Glibc.mount("tmpfs", mount, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), "") == 0)
      await expectFailure(.denied) { try await carrier.put([1], as: "aa", in: place) }
      #expect(try await carrier.list(place, limit: 1) == [])
    }
  }

  @Test func aStickThatIsPulledOutIsNotThere() async throws {
    try await withMount("size=1m") { carrier in
      try await carrier.makePlace(place)
      try await carrier.put([1], as: "aa", in: place)
      try #require(umount2(mount, Int32(MNT_DETACH)) == 0)
      await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 1) }
      await expectFailure(.notThere) { try await carrier.put([1], as: "bb", in: place) }
    }
  }
}

/// A folder on another computer, which hangs or goes away: sshfs with a server that is stopped.
@Suite(
  .enabled(if: getuid() == 0, "only root may mount a file system"),
  .enabled(if: isInstalled("sshfs"), "Debian's sshfs is missing"),
  .enabled(
    if: isInstalled("../lib/openssh/sftp-server"), "Debian's openssh-sftp-server is missing"),
  .enabled(if: FileManager.default.fileExists(atPath: "/dev/fuse"), "the kernel has no FUSE here"),
  .timeLimit(.minutes(1)))
struct HangingFolderTests {
  // The script ends before its directory is removed.
  private let script: ScriptProcess
  private let directory: TestDirectory
  private var mount: String { directory.child("mount") }

  init() async throws {
    directory = try TestDirectory()
    script = try await ScriptProcess("sshfs.py", [directory.path])
    if let reason = script.reply.failed { throw NotInTime(reason) }
  }

  @Test func conforms() async {
    let mount = mount
    await expectConformance(CarrierConformance(place: freshPlace) { FolderCarrier(path: mount) })
  }

  @Test func aFolderThatHangsIsLeft() async throws {
    let carrier = FolderCarrier(path: mount, quiet: .milliseconds(200))
    let patient = FolderCarrier(path: mount)
    let place = freshPlace()
    try await patient.makePlace(place)
    try await patient.put([1], as: "aa", in: place)
    try await script.command("stop")
    // More than there are threads.
    for _ in 0..<CarrierLimits.folderThreads + 2 {
      await expectFailure(.unreachable) { _ = try await carrier.list(place, limit: 1) }
    }
    let put = Task { try await patient.put([1], as: "bb", in: place) }
    put.cancel()
    await expectFailure(.unreachable) { try await put.value }
    try await script.command("go on")
    #expect(try await patient.get("aa", from: place, limit: 1) == [1])
  }

  @Test func aFolderWhoseServerEndsIsNotThere() async throws {
    let carrier = FolderCarrier(path: mount)
    let place = freshPlace()
    try await carrier.makePlace(place)
    try await carrier.put([1], as: "aa", in: place)
    try await script.command("kill")
    for _ in 0..<2 {
      await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 1) }
      await expectFailure(.notThere) { try await carrier.put([1], as: "bb", in: place) }
    }
  }
}
