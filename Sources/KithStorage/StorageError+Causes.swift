import Foundation
import GRDB
import KithCore

extension StorageError {
  static func damaged(_ path: String, _ what: String) -> Self {
    Self(
      code: .damaged, path: path,
      message: "\(what); it was left as it is: restore the whole directory from a backup, or "
        + "move it away and enrol this device anew")
  }

  static func newerSchema(_ path: String, found: Int, known: Int) -> Self {
    Self(
      code: .newerSchema, path: path,
      message: "written by a newer Kith (schema \(found), this one knows \(known)); upgrade kith")
  }

  static func closed(_ path: String) -> Self {
    Self(code: .inputOutput, path: path, message: "the device was closed; open it again")
  }

  static func system(_ action: String, _ path: String, errno number: Int32) -> Self {
    let reason = String(cString: strerror(number))
    switch number {
    case ENOSPC, EDQUOT, EFBIG:
      return .diskFull(path, reason)
    case EROFS, EACCES, EPERM:
      return Self(
        code: .readOnly, path: path,
        message: "cannot \(action) (\(reason)); make it writable for this user")
    default:
      return Self(code: .inputOutput, path: path, message: "cannot \(action) (\(reason))")
    }
  }

  private static func diskFull(_ path: String, _ reason: String) -> Self {
    Self(
      code: .diskFull, path: path,
      message: "no room left (\(reason)); nothing of the write was kept: free some and try again")
  }

  private static func readOnly(_ path: String, _ reason: String) -> Self {
    Self(
      code: .readOnly, path: path,
      message: "cannot be written (\(reason)); make file and directory writable for this user")
  }

  /// `systemError`: the failed system call's `errno`.
  static func database(_ path: String, _ error: any Error, systemError: Int32 = 0) -> Self {
    if let error = error as? StorageError { return error }
    guard let error = error as? DatabaseError else {
      return Self(code: .inputOutput, path: path, message: "\(error)")
    }
    let reason = error.message ?? "SQLite code \(error.extendedResultCode.rawValue)"
    switch error.resultCode {
    case .SQLITE_FULL:
      return .diskFull(path, reason)
    case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM:
      return .readOnly(path, reason)
    case .SQLITE_IOERR where [EROFS, EPERM, EACCES].contains(systemError):
      // The files became read-only while they were open.
      return .readOnly(path, String(cString: strerror(systemError)))
    case .SQLITE_IOERR where [ENOSPC, EDQUOT, EFBIG].contains(systemError):
      return .diskFull(path, String(cString: strerror(systemError)))
    // A table's definition may be damaged; no SQL statement of Kith fails so otherwise.
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_MISMATCH:
      return .damaged(path, "the database is damaged (\(reason))")
    default:
      return Self(
        code: .inputOutput, path: path,
        message: "\(reason) (SQLite code \(error.extendedResultCode.rawValue))")
    }
  }
}
