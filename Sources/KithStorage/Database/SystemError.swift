import GRDB
import GRDBSQLite

/// The `errno` of the last system call that failed on a database's write-ahead log, or else on its
/// main file; 0: none did.
///
/// `sqlite3_system_errno` does not know it: of a commit that fails SQLite keeps the number with the
/// file alone.
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
