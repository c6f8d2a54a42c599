import Testing

@testable import KithCommands

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

  @Test func `a host that does not tell its mounts is trusted`() {
    #expect(FolderSite.warning("/mnt/nas", mounts: nil, fstab: nil) == nil)
  }
}
