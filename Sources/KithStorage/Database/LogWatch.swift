import CSQLite

/// Tells when the write-ahead log has a whole commit that is not synced yet.
///
/// With `synchronous=FULL`, SQLite writes a commit's frames, the last one with the size of the
/// database, and then syncs the log (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).
/// It calls the functions in the file's table (<https://www.sqlite.org/c3ref/io_methods.html>). The
/// watch replaces that table by a copy whose writes and syncs pass through it. All else is SQLite's
/// own: when it syncs, when it checkpoints, and that a commit whose sync failed is rolled back.
final class LogWatch {
  /// SQLite's pointer to the functions leads to the first member.
  fileprivate struct Table {
    var methods: sqlite3_io_methods
    let original: UnsafePointer<sqlite3_io_methods>
    let pageBytes: Int
    var written: (() -> Void)?
    /// The bytes of the page that the last frame of a commit still lacks; nil: no such frame.
    var missingBytes: Int?
  }

  fileprivate static let frameHeaderBytes: Int32 = 24

  private let table: UnsafeMutablePointer<Table>

  /// `file`: an open write-ahead log, which must be closed before the watch is released.
  init?(_ file: UnsafeMutablePointer<sqlite3_file>, pageBytes: Int) {
    guard let original = file.pointee.pMethods else { return nil }
    var methods = original.pointee
    methods.xWrite = { file, bytes, count, offset in
      guard let table = Table.of(file), let write = table.pointee.original.pointee.xWrite else {
        return SQLITE_IOERR
      }
      let code = write(file, bytes, count, offset)
      if code == SQLITE_OK, let bytes { table.pointee.note(bytes, count) }
      return code
    }
    methods.xSync = { file, flags in
      guard let table = Table.of(file), let sync = table.pointee.original.pointee.xSync else {
        return SQLITE_IOERR
      }
      table.pointee.tell()
      return sync(file, flags)
    }
    table = .allocate(capacity: 1)
    table.initialize(to: Table(methods: methods, original: original, pageBytes: pageBytes))
    file.pointee.pMethods = UnsafeRawPointer(table).assumingMemoryBound(to: sqlite3_io_methods.self)
  }

  deinit {
    table.deinitialize(count: 1)
    table.deallocate()
  }

  func watches(_ file: UnsafeMutablePointer<sqlite3_file>) -> Bool {
    file.pointee.pMethods.map(UnsafeRawPointer.init) == UnsafeRawPointer(table)
  }

  /// Calls `written` at most once while `commit` runs.
  func tell<Failure: Error>(
    _ written: () -> Void, during commit: () throws(Failure) -> Void
  ) throws(Failure) {
    try withoutActuallyEscaping(written) { written throws(Failure) in
      table.pointee.written = written
      defer { (table.pointee.written, table.pointee.missingBytes) = (nil, nil) }
      try commit()
    }
  }
}

extension LogWatch.Table {
  fileprivate static func of(
    _ file: UnsafeMutablePointer<sqlite3_file>?
  ) -> UnsafeMutablePointer<Self>? {
    UnsafeMutableRawPointer(mutating: file?.pointee.pMethods)?
      .assumingMemoryBound(to: Self.self)
  }

  /// A header's second word is zero but in the last frame of a commit.
  fileprivate mutating func note(_ bytes: UnsafeRawPointer, _ count: Int32) {
    if count == LogWatch.frameHeaderBytes {
      missingBytes = bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self) == 0 ? nil : pageBytes
    } else if let missing = missingBytes {
      missingBytes = missing - Int(count)
    }
  }

  fileprivate mutating func tell() {
    guard missingBytes == 0, let written = written.take() else { return }
    written()
  }
}
