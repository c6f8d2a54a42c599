import GRDB
import KithCore

/// Opens every database of this module, so that the yardstick equals what it measures.
enum Connection {
  /// The pages of the write-ahead log before a commit copies them into the database: 8 MiB, so that
  /// few commits pay for it, and replay is quick.
  static let checkpointPages = 2_000

  /// With less free space the log is kept short: four commits of a whole store of the standard
  /// size.
  static let tightRoom = 4 << 20

  /// The size of a short log.
  static let shortLog = 256 << 10

  /// Copies the write-ahead log into the database, and truncates it.
  static let emptyingLog = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// Opens a database, or creates it.
  ///
  /// The connection keeps its locks (`locking_mode = EXCLUSIVE`), as the directory has one owner:
  /// no locking calls, and the shared index is memory, without a `-shm` file.
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

  /// Empties the write-ahead log into the database and closes it.
  static func close(_ queue: DatabaseQueue, path: String) throws(StorageError) {
    do {
      try queue.writeWithoutTransaction { try $0.execute(sql: emptyingLog) }
      try queue.close()
    } catch {
      throw .database(path, error)
    }
  }
}
