internal import Foundation
import Kith
import KithCarriersTesting
import KithTestSupport
import Testing

@testable import KithCarriers

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
