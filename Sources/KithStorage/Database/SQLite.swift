import CSQLite
import Glibc
import KithCore

/// A connection to an SQLite database, which one thread at a time may use.
///
/// It closes when its last reference is released, and each of its statements has one
/// (<https://www.sqlite.org/c3ref/close.html>).
final class Connection {
  /// Named by errors.
  let path: String
  fileprivate let handle: OpaquePointer
  private let opener = Opener()
  /// The last one watches the log.
  private var logWatches: [LogWatch] = []

  /// Opens a file, which is created if it is missing. SQLite reads it when the first statement runs.
  ///
  /// If another connection has locked the database, a statement fails at once: nobody waits for it.
  init(path: String) throws(StorageError) {
    self.path = path
    handle = try Self.open(path, named: path)
  }

  /// Opens a database in memory, which has the pages of the one at the path.
  init(inMemory bytes: [UInt8], path: String) throws(StorageError) {
    self.path = path
    handle = try Self.open(":memory:", named: path)
    let size = Int64(bytes.count)
    guard let copy = sqlite3_malloc64(UInt64(max(1, size))) else { throw error(SQLITE_NOMEM) }
    bytes.withUnsafeBytes { bytes in
      UnsafeMutableRawBufferPointer(start: copy, count: bytes.count).copyMemory(from: bytes)
    }
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
    // SQLite frees the copy, also if it fails.
    try check(
      sqlite3_deserialize(
        handle, "main", copy.assumingMemoryBound(to: UInt8.self), size, size, flags))
  }

  /// Opens an empty database in memory.
  init() throws(StorageError) {
    path = "memory"
    handle = try Self.open(":memory:", named: path)
  }

  /// Closing empties the write-ahead log and removes it. A forked child keeps the connection open, as
  /// SQLite advises (<https://www.sqlite.org/howtocorrupt.html>, section 2.7).
  deinit { if opener.isThisProcess { sqlite3_close_v2(handle) } }

  private static func open(
    _ name: String, named path: String
  ) throws(StorageError) -> OpaquePointer {
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let code = sqlite3_open_v2(name, &handle, flags, nil)
    guard code == SQLITE_OK, let handle else {
      let reason = String(cString: handle.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code))
      let systemError = handle.map { sqlite3_system_errno($0) } ?? 0
      sqlite3_close_v2(handle)
      throw .database(path, code: code, reason, systemError: systemError)
    }
    sqlite3_extended_result_codes(handle, 1)
    return handle
  }

  /// Runs SQL statements, and ignores their rows.
  func execute(_ sql: String) throws(StorageError) {
    try check(sqlite3_exec(handle, sql, nil, nil, nil))
  }

  /// Compiles one SQL statement, to be run often.
  func prepare(_ sql: String) throws(StorageError) -> Statement {
    try Statement(sql, on: self, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
  }

  /// Calls back with each row of an SQL statement that is run once.
  func read(
    _ sql: String, each: (Statement) throws(StorageError) -> Void
  ) throws(StorageError) {
    try Statement(sql, on: self, flags: 0).read { (row) throws(StorageError) in
      try each(row)
      return true
    }
  }

  /// The first column of the first row; 0 if there is none.
  func integer(_ sql: String) throws(StorageError) -> Int {
    var found: Int?
    try read(sql) { found = found ?? Int($0.integer(0)) }
    return found ?? 0
  }

  /// The first column of each row.
  func texts(_ sql: String) throws(StorageError) -> [String] {
    var found: [String] = []
    try read(sql) { found.append($0.text(0)) }
    return found
  }

  /// Calls `written` at most once while `commit` runs: when the write-ahead log has the whole commit,
  /// before it is synced. Without such a log it is never called.
  func tell(
    _ written: () -> Void, during commit: () throws(StorageError) -> Void
  ) throws(StorageError) {
    guard let watch = try logWatch() else { return try commit() }
    try watch.tell(written, during: commit)
  }

  private func logWatch() throws(StorageError) -> LogWatch? {
    guard let log = file(SQLITE_FCNTL_JOURNAL_POINTER) else { return nil }
    if let watch = logWatches.last, watch.watches(log) { return watch }
    guard try texts("PRAGMA journal_mode") == ["wal"],
      let watch = LogWatch(log, pageBytes: try integer("PRAGMA page_size"))
    else { return nil }
    logWatches.append(watch)
    return watch
  }

  private func file(_ pointer: Int32) -> UnsafeMutablePointer<sqlite3_file>? {
    var file: UnsafeMutablePointer<sqlite3_file>?
    let code = sqlite3_file_control(handle, nil, pointer, &file)
    return code == SQLITE_OK ? file : nil
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  fileprivate func check(_ code: Int32) throws(StorageError) {
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// The error of the call before.
  fileprivate func error(_ code: Int32) -> StorageError {
    // The connection's message belongs to its last code.
    let isLast = sqlite3_extended_errcode(handle) == code
    return .database(
      path, code: code, String(cString: isLast ? sqlite3_errmsg(handle) : sqlite3_errstr(code)),
      // No file was opened that could know it.
      systemError: code & 0xff == SQLITE_CANTOPEN ? sqlite3_system_errno(handle) : lastSystemError)
  }

  /// The `errno` of the last failed system call on the write-ahead log, or else the main file; 0:
  /// none.
  ///
  /// After a failed commit only the file knows it, not `sqlite3_system_errno`.
  private var lastSystemError: Int32 {
    for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
      guard let file = file(pointer), let control = file.pointee.pMethods?.pointee.xFileControl
      else { continue }
      var number: Int32 = 0
      if control(file, SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK, number != 0 {
        return number
      }
    }
    return 0
  }
}

/// A prepared SQL statement. Its parameters are a row id, bytes, or both in this order; or the
/// first and the last row id of a range.
final class Statement {
  private let connection: Connection
  private let handle: OpaquePointer

  fileprivate init(_ sql: String, on connection: Connection, flags: UInt32) throws(StorageError) {
    var handle: OpaquePointer?
    try connection.check(sqlite3_prepare_v3(connection.handle, sql, -1, flags, &handle, nil))
    guard let handle else { throw connection.error(SQLITE_MISUSE) }
    self.connection = connection
    self.handle = handle
  }

  deinit { sqlite3_finalize(handle) }

  /// Runs the statement, which has no rows.
  func run(id: Int64? = nil, bytes: [UInt8]? = nil) throws(StorageError) {
    defer { reset() }
    if let id { try connection.check(sqlite3_bind_int64(handle, 1, id)) }
    guard let bytes else { return try finish(sqlite3_step(handle)) }
    let code = bytes.withUnsafeBytes { bytes in
      // Without a copy: SQLite reads the bytes only while it steps. No bytes are not NULL.
      let code =
        bytes.isEmpty
        ? sqlite3_bind_zeroblob(handle, id == nil ? 1 : 2, 0)
        : sqlite3_bind_blob64(
          handle, id == nil ? 1 : 2, bytes.baseAddress, UInt64(bytes.count), nil)
      return code == SQLITE_OK ? sqlite3_step(handle) : code
    }
    try finish(code)
  }

  /// Calls back with each row until the body returns false. The row is read through the statement,
  /// and ends with the call.
  func read(
    _ ids: ClosedRange<Int64>? = nil, _ body: (Statement) throws(StorageError) -> Bool
  ) throws(StorageError) {
    defer { reset() }
    if let ids {
      try connection.check(sqlite3_bind_int64(handle, 1, ids.lowerBound))
      try connection.check(sqlite3_bind_int64(handle, 2, ids.upperBound))
    }
    var code = sqlite3_step(handle)
    while code == SQLITE_ROW {
      guard try body(self) else { return }
      code = sqlite3_step(handle)
    }
    try finish(code)
  }

  /// A column of the row; 0 if it is null.
  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// A column of the row; empty if it is null.
  func bytes(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(handle, column) else { return [] }
    let count = Int(sqlite3_column_bytes(handle, column))
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  /// A column of the row; empty if it is null.
  func text(_ column: Int32) -> String {
    guard let start = sqlite3_column_text(handle, column) else { return "" }
    return String(cString: start)
  }

  private func finish(_ code: Int32) throws(StorageError) {
    guard code == SQLITE_DONE else { throw connection.error(code) }
  }

  /// Ends the run, and forgets the parameters: their bytes may be gone.
  private func reset() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }
}

extension StorageError {
  /// `code`: SQLite's, extended. `systemError`: the failed system call's `errno`; 0: unknown.
  fileprivate static func database(
    _ path: String, code: Int32, _ reason: String, systemError: Int32 = 0
  ) -> Self {
    switch code & 0xff {
    case SQLITE_FULL:
      .diskFull(path, reason)
    case SQLITE_CANTOPEN where [EMFILE, ENFILE].contains(systemError):
      .system("open it", path, errno: systemError)
    case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
      .readOnly(path, reason)
    case SQLITE_IOERR where [EROFS, EPERM, EACCES].contains(systemError):
      // The files became read-only while they were open.
      .readOnly(path, String(cString: strerror(systemError)))
    case SQLITE_IOERR where [ENOSPC, EDQUOT, EFBIG].contains(systemError):
      .diskFull(path, String(cString: strerror(systemError)))
    // A table's definition may be damaged; no SQL statement of Kith fails so otherwise.
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_MISMATCH:
      .damagedDatabase(path, "the database is damaged (\(reason))")
    default:
      Self(code: .inputOutput, path: path, message: "\(reason) (SQLite code \(code))")
    }
  }
}
