import Glibc
import KithCore

extension StorageError {
  static func damaged(_ path: String, _ what: String) -> Self {
    Self(
      code: .damaged, path: path,
      message: "\(what); it was left as it is: restore the whole directory from a backup, or "
        + "move the device's files (secrets, kith.sqlite*) away and enrol this device anew")
  }

  /// Of which ``DeviceDirectory/rebuild(_:secrets:after:isByHand:)`` may make a new one.
  static func damagedDatabase(_ path: String, _ what: String) -> Self {
    Self(
      code: .damaged, path: path,
      message: what + damagedDatabaseAdvice)
  }

  private static let damagedDatabaseAdvice =
    "; it was left as it is, because writes that no other device has may be in the damaged part: "
    + "kith doctor --repair makes a new one of what can be read, and keeps this one; or restore the "
    + "whole directory from a backup"

  /// The message without the advice for a damaged database.
  var reason: String {
    message.hasSuffix(Self.damagedDatabaseAdvice)
      ? String(message.dropLast(Self.damagedDatabaseAdvice.count)) : message
  }

  static func lacksSecrets(_ layout: Layout) -> Self {
    // Not the whole directory: it may hold local writes and other accounts.
    let old = ShellText.quoted(layout.directory + ".old")
    let move = "mkdir -m 700 \(old) && mv \(ShellText.quoted(layout.database))* \(old)"
    return Self(
      code: .damaged, path: layout.secrets,
      message: layout.isLocal
        ? "the writes made here while nobody was signed in have lost their secrets, so nothing can be "
          + "read or written: put the file back from a backup of the directory; if there is none, they "
          + "are lost, and moving the database away begins anew (\(move))"
        : "a device is here without its secrets, so nothing can be read or written: put the file "
          + "back from a backup of the directory; if there is none, move the database away "
          + "(\(move)), join the account anew, and revoke the lost device there")
  }

  static func anotherDevice(_ path: String) -> Self {
    Self(
      code: .damaged, path: path,
      message:
        "this is the database of another device than the one whose secrets lie beside it; put "
        + "the two files of one device together again")
  }

  static func newerSchema(_ path: String, found: Int, known: Int) -> Self {
    Self(
      code: .newerSchema, path: path,
      message: "written by a newer Kith (schema \(found), this one knows \(known)); upgrade kith")
  }

  static func olderSchema(_ path: String) -> Self {
    Self(
      code: .olderSchema, path: path,
      message: "written by a version before the first release, which this one does not read; "
        + "create or join an account in another directory")
  }

  static func closed(_ path: String) -> Self {
    Self(code: .inputOutput, path: path, message: "the device was closed; open it again")
  }

  static func inherited(_ path: String) -> Self {
    Self(
      code: .inputOutput, path: path,
      message: "the process that forked this one has the device open; use it there alone")
  }

  static func system(_ action: String, _ path: String, errno number: Int32) -> Self {
    let reason = String(cString: strerror(number))
    switch number {
    case ENOSPC, EDQUOT, EFBIG:
      return .diskFull(path, reason)
    case EROFS, EACCES, EPERM:
      if number == EACCES, let foreign = Files.foreign(Files.parent(of: path)) { return foreign }
      return Self(
        code: .readOnly, path: path,
        message: "cannot \(action) (\(reason))\(readOnlyAdvice(number == EROFS))")
    case EMFILE:
      return Self(
        code: .inputOutput, path: path,
        message: "cannot \(action) (\(reason)): the process has all descriptors that it may; raise "
          + "their limit (ulimit -n, or LimitNOFILE= of a service)")
    default:
      return Self(code: .inputOutput, path: path, message: "cannot \(action) (\(reason))")
    }
  }

  static func deleted(_ path: String) -> Self {
    Self(
      code: .inputOutput, path: path,
      message:
        "was deleted while it was in use, so nothing can be kept; end this process, then restore "
        + "the directory from a backup, or join again")
  }

  static func diskFull(_ path: String, _ reason: String) -> Self {
    Self(
      code: .diskFull, path: path,
      message:
        "the disk is full (\(reason)): writes fail, reads work; free some space on it (removing keys "
        + "needs some and frees none), and try again")
  }

  static func readOnly(_ path: String, _ reason: String) -> Self {
    Self(
      code: .readOnly, path: path,
      message:
        "cannot be written (\(reason)); make file and directory writable for this user, or the "
        + "file system if that is mounted read-only")
  }

  /// No change of modes makes a file system writable.
  private static func readOnlyAdvice(_ isOfFileSystem: Bool) -> String {
    isOfFileSystem
      ? "; the file system is mounted read-only: mount it for writing, or use a directory on another "
        + "one (a damaged disk is mounted so, too: see dmesg)"
      : "; make it writable for this user"
  }
}
