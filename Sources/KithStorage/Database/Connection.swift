import GRDB
import GRDBSQLite
import KithCore

/// Shared by all databases, so that the yardstick equals what it measures.
enum Connection {
  /// At 8 MiB a commit copies the write-ahead log into the database: few commits pay for it, and
  /// replay is quick.
  static let checkpointPages = 2_000

  /// With less free space the log is kept short: four commits of a whole store of standard size.
  static let tightRoom = 4 << 20

  static let shortLog = 256 << 10

  static let emptyingLog = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// The directory has one owner, so the connection keeps its locks: no locking calls, and no
  /// `-shm` file.
  static func open(_ path: String) throws(StorageError) -> DatabaseQueue {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.label = "kith.storage"
    configuration.prepareDatabase { database in
      try database.execute(
        sql: """
          PRAGMA locking_mode = EXCLUSIVE;
          PRAGMA journal_mode = WAL;
          PRAGMA synchronous = FULL;
          PRAGMA wal_autocheckpoint = \(checkpointPages);
          PRAGMA cache_size = -4096;
          PRAGMA temp_store = MEMORY;
          PRAGMA trusted_schema = OFF;
          """)
    }
    do {
      return try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw .database(path, error)
    }
  }

  /// A database in memory with the same pages.
  static func openCopy(
    of image: DatabaseImage, _ path: String
  ) throws(StorageError) -> DatabaseQueue {
    var bytes = image.bytes
    // There is no write-ahead log in memory.
    if bytes.count > 20 { (bytes[18], bytes[19]) = (1, 1) }
    do {
      let queue = try DatabaseQueue()
      try queue.writeWithoutTransaction { database in
        guard let copy = sqlite3_malloc64(UInt64(max(1, bytes.count))) else {
          throw DatabaseError(resultCode: .SQLITE_NOMEM)
        }
        bytes.withUnsafeBytes {
          copy.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(copy), byteCount: $0.count)
        }
        let size = Int64(bytes.count)
        let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
        let code = sqlite3_deserialize(
          database.sqliteConnection, "main", copy.assumingMemoryBound(to: UInt8.self), size, size,
          flags)
        guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        database.clearSchemaCache()
      }
      return queue
    } catch {
      throw .database(path, error)
    }
  }

  /// Empties the write-ahead log first.
  static func close(_ queue: DatabaseQueue, path: String) throws(StorageError) {
    do {
      try queue.writeWithoutTransaction { try $0.execute(sql: emptyingLog) }
      try queue.close()
    } catch {
      throw .database(path, error)
    }
  }
}
