import GRDB
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
