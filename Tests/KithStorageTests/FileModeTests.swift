import Foundation
import Glibc
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import KithStorage

/// The checks of a directory when it is opened: the owner of its files, their modes, and that they
/// are no links.
@Suite struct FileModeTests {
  private static let files = ["secrets", "lock", "kith.sqlite", "kith.sqlite-wal"]

  private func made() throws -> TestDirectory {
    let directory = try TestDirectory()
    try DeviceDirectory.create(at: directory.device, secrets: newSecrets(), initial: []).close()
    return directory
  }

  private func refusal(_ path: String) throws -> StorageError {
    try #require(
      #expect(throws: StorageError.self) { try DeviceDirectory.open(at: path).close() })
  }

  /// As after a crash, when the log is still there.
  private func withLog(_ directory: borrowing TestDirectory) throws {
    let log = directory.device + "/kith.sqlite-wal"
    if !Files.exists(log) { try Files.makePrivateFile(log) }
  }

  @Test func `a file that others may use is refused with the command that mends it`() throws {
    let directory = try made()
    try withLog(directory)
    for name in Self.files {
      let path = "\(directory.device)/\(name)"
      for mode in [0o640, 0o604, 0o700] as [mode_t] {
        chmod(path, mode)
        let error = try refusal(directory.device)
        #expect(error.code == .unsafePermissions, "\(name): \(error)")
        #expect(error.path == path)
        #expect(error.message.contains("chmod 600 '\(path)'"))
      }
      chmod(path, 0o600)
    }
    try DeviceDirectory.open(at: directory.device).close()
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
  func `a file of another user is refused with the command that helps`() throws {
    let directory = try made()
    try withLog(directory)
    for path in Self.files.map({ "\(directory.device)/\($0)" }) {
      chown(path, 12_345, 0)
      let error = try refusal(directory.device)
      #expect(error.code == .unsafePermissions, "\(path): \(error)")
      #expect(error.message.contains("belongs to the user 12345; run: chown root '\(path)'"))
      chown(path, 0, 0)
    }
    // A service's directory is its user's: nobody is told to take it away.
    chown(directory.device, 12_345, 0)
    #expect(
      try refusal(directory.device).message
        == "belongs to the user 12345; give another --directory")
    let nobody = try #require(getpwnam("nobody")).pointee.pw_uid
    chown(directory.device, nobody, 0)
    for error in [
      try refusal(directory.device),
      try #require(
        #expect(throws: StorageError.self) { _ = try DeviceDirectory.reserve(directory.device) }),
    ] {
      #expect(error.code == .unsafePermissions && error.path == directory.device)
      #expect(
        error.message.contains(
          "runuser -u nobody -- kith status --directory '\(directory.device)'"))
      #expect(!error.message.contains("chown") && !error.message.contains("chmod"))
    }
    chown(directory.device, 0, 0)
    try DeviceDirectory.open(at: directory.device).close()
  }

  /// `kith ls -d /etc` said: run: chmod 700 '/etc'.
  @Test func `no command is given that changes a directory of others' files`() throws {
    let directory = try TestDirectory()
    mkdir(directory.device, 0o755)
    try Files.makePrivateFile(directory.device + "/passwd")
    // A name that others use as well.
    mkdir(directory.device + "/secrets", 0o755)
    for mode in [0o755, 0o1777, 0o750] as [mode_t] {
      chmod(directory.device, mode)
      let opening = try refusal(directory.device)
      #expect(opening.code == .missing && !opening.message.contains("chmod"), "\(opening)")
      let making = try #require(
        #expect(throws: StorageError.self) { _ = try DeviceDirectory.reserve(directory.device) })
      #expect(making.code == .unsafePermissions && !making.message.contains("chmod"), "\(making)")
      #expect(making.message.contains("--directory '\(directory.device)/kith'"))
    }
    // One that is empty may be made private.
    rmdir(directory.device + "/secrets")
    unlink(directory.device + "/passwd")
    let empty = try #require(
      #expect(throws: StorageError.self) { _ = try DeviceDirectory.reserve(directory.device) })
    #expect(empty.message.contains("run: chmod 700 '\(directory.device)'"))
  }

  @Test func `a path is one word of the command, whatever is in it`() throws {
    #expect(ShellText.quoted("/a b") == "'/a b'")
    #expect(ShellText.quoted("/it's $(x)") == #"'/it'\''s $(x)'"#)
  }

  @Test func `a link is followed to no file, and not to another directory`() throws {
    let directory = try made()
    try withLog(directory)
    for name in Self.files {
      let (path, elsewhere) = ("\(directory.device)/\(name)", "\(directory.device)/elsewhere")
      rename(path, elsewhere)
      symlink(elsewhere, path)
      let error = try refusal(directory.device)
      #expect(error.code == .wrongFileType && error.path == path, "\(name): \(error)")
      #expect(error.message.contains("is a link"))
      unlink(path)
      rename(elsewhere, path)
    }
    let link = directory.device + "-link"
    symlink(directory.device, link)
    defer { unlink(link) }
    #expect(try refusal(link).message.contains("is a link"))
    #expect(try refusal(link).message.hasSuffix(": '\(directory.device)'"))
    try DeviceDirectory.open(at: directory.device).close()
  }

  /// It said that the mode cannot be set.
  @Test func `a link that leads nowhere is no place for a new directory`() throws {
    let directory = try TestDirectory()
    let link = directory.path + "/link"
    symlink(directory.path + "/nowhere", link)
    for path in [link, link + "/below"] {
      let error = try #require(
        #expect(throws: StorageError.self) { try Files.makePrivateDirectory(path) })
      #expect(error.code == .wrongFileType && error.path == link, "\(error)")
      #expect(error.message.contains("leads nowhere"), "\(error)")
    }
  }

  /// It was called empty if its files could not be seen.
  @Test func `a directory that its owner may not use is not called empty`() throws {
    let directory = try made()
    for mode in [0o000, 0o400, 0o100] as [mode_t] {
      chmod(directory.device, mode)
      let error = try refusal(directory.device)
      #expect(error.code == .unsafePermissions, "\(error)")
      #expect(error.message.contains("chmod 700 '\(directory.device)'"))
    }
    chmod(directory.device, 0o700)
    try DeviceDirectory.open(at: directory.device).close()
  }
}
