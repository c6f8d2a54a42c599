import Foundation
import KithCarriers
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite struct CarrierCredentialsTests {
  @Test(arguments: [
    ("me\nsecret", "a user and a password"), ("me\nsecret\n", "a user and a password"),
    ("me\n\n", "a user and a password"), ("token", "a token"), ("token\n", "a token"),
    ("", "no credentials"),
  ])
  func `a file keeps the form that it has, also with an empty password`(
    file: String, form: String
  ) throws {
    let directory = try TestDirectory()
    let path = directory.child("credentials")
    try Data(file.utf8).write(to: URL(filePath: path))
    let options = try CarrierCredentialsOptions.parse(["--credentials-file", path])
    let address = try CarrierAddress(.webdav, "https://cloud.example/")
    let text = try #require(try options.text(for: address, Console()))
    #expect("\(try CarrierCredentials(parsing: Array(text.utf8), for: .webdav))" == form)
  }
}

@Suite("Folders for media that may not be mounted")
struct FolderSiteTests {
  private static let mounts = """
    21 1 8:1 / / rw - ext4 /dev/sda1 rw
    30 21 0:40 / /mnt/nas rw - nfs4 nas:/kith rw
    31 21 0:41 / /media/me/My\\040Stick rw - vfat /dev/sdb1 rw
    32 21 0:42 / /net rw - autofs systemd-1 rw
    33 32 0:43 / /net/server rw - nfs4 server:/ rw
    """
  private static let fstab = """
    # <file system> <mount point> <type>
    UUID=1 / ext4 defaults 0 1
    nas:/kith /mnt/nas nfs4 defaults 0 0
    nas:/more /srv/more nfs4 noauto 0 0
    """

  private static func warning(_ path: String) -> String? {
    FolderSite.warning(path, mounts: mounts, fstab: fstab)
  }

  @Test(arguments: [
    "/mnt/nas/kith", "/mnt/nas", "/media/me/My Stick/kith", "/net/server/kith", "/home/me/Sync",
    "/srv/other", "/mntx/kith",
  ])
  func `a mounted folder, and one elsewhere, is used without a question`(path: String) {
    #expect(Self.warning(path) == nil)
  }

  @Test(arguments: [
    ("/mnt/nsa/kith", "nothing is mounted there"), ("/mnt", "nothing is mounted there"),
    ("/mnt/nasx", "nothing is mounted there"), ("/media/me/Stick", "nothing is mounted there"),
    ("/srv/more/kith", "at /srv/more"), ("/net/other/kith", "automounter"),
  ])
  func `a folder where nothing is mounted is asked about`(path: String, word: String) {
    #expect(Self.warning(path)?.contains(word) == true, "\(Self.warning(path) ?? "nil")")
  }

  @Test func `a folder is judged by where its links lead`() throws {
    let root = try TestDirectory()
    let link = FolderSite.real(root.path) + "/nas"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/usr/share")
    #expect(FolderSite.real(link + "/kith/more") == "/usr/share/kith/more")
    #expect(FolderSite.real("/nowhere/kith") == "/nowhere/kith")
  }

  /// Each counted as a carrier of its own.
  @Test func `a folder is one by any path, and not where a carrier has its objects`() throws {
    let root = try TestDirectory()
    let (nas, link) = (root.child("nas"), root.child("link"))
    let place = nas + "/kith1/" + String(repeating: "ab", count: 16)
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: nas)
    #expect(FolderSite.isSame(nas, link) && FolderSite.isSame(nas, nas))
    #expect(!FolderSite.isSame(nas, root.path) && !FolderSite.isSame(nas, nas + "/none"))
    for path in [place, place + "/more", nas + "/kith1", link + "/kith1"] {
      #expect(FolderSite.isOfObjects(path), "\(path)")
    }
    for path in [nas, link, root.child("kith1"), root.child("kith1/share"), nas + "/none"] {
      #expect(!FolderSite.isOfObjects(path), "\(path)")
    }
  }

  /// Outside the usual places of mounted media, such as /srv/nas.
  @Test func `a new folder in an empty directory beside the device is noted`() throws {
    let root = try TestDirectory()
    let nas = root.child("nas")
    try FileManager.default.createDirectory(atPath: nas, withIntermediateDirectories: false)
    func warning(_ path: String) -> String? {
      FolderSite.emptyParentNote(path, beside: root.path)
    }
    #expect(warning(nas + "/kith")?.contains("nas is empty") == true)
    #expect(FolderSite.emptyParentNote(nas + "/kith", beside: "/proc") == nil)
    #expect(warning(nas) == nil && warning(root.child("other")) == nil)
    try Data([1]).write(to: URL(filePath: nas + "/file"))
    #expect(warning(nas + "/kith") == nil)
  }

  @Test func `a folder in memory is told`() {
    let mounts = Self.mounts + "\n34 21 0:44 / /run rw - tmpfs tmpfs rw"
    #expect(FolderSite.note("/run/kith", mounts: mounts)?.contains("memory") == true)
    #expect(FolderSite.note("/home/me/kith", mounts: mounts) == nil)
  }

  @Test func `a host that does not tell its mounts is trusted`() {
    #expect(FolderSite.warning("/mnt/nas", mounts: nil, fstab: nil) == nil)
  }
}
