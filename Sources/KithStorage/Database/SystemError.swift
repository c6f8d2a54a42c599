import GRDB
import GRDBSQLite

/// The `errno` of the last failed system call on the write-ahead log, or else the main file; 0:
/// none.
///
/// After a failed commit only the file knows it, not `sqlite3_system_errno`.
func lastSystemError(of database: Database) -> Int32 {
  for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
    var file: UnsafeMutablePointer<sqlite3_file>?
    guard sqlite3_file_control(database.sqliteConnection, nil, pointer, &file) == SQLITE_OK,
      let file, let control = file.pointee.pMethods?.pointee.xFileControl
    else { continue }
    var number: Int32 = 0
    if control(file, SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK, number != 0 { return number }
  }
  return 0
}
