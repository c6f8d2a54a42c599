import GRDB
import KithCore

/// How every database of this module is opened, so that the yardstick is equal to what it
/// measures.
enum Connection {
  /// How many pages the write-ahead log takes before a commit copies them into the database:
  /// 8 MiB. Large enough that a commit seldom pays for it, small enough to replay quickly.
  static let checkpointPages = 2_000

  /// With fewer bytes left on the file system the log is kept short: four commits of a whole store of
  /// the standard size.
  static let tightRoom = 4 << 20

  /// Bytes of a log that is short enough where room is scarce.
  static let shortLog = 256 << 10

  /// Copies the write-ahead log into the database, and gives its room back to the file system.
  static let emptyingLog = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// Opens a database; creates it where none is.
  ///
  /// The connection keeps its locks (`locking_mode = EXCLUSIVE`): the directory has one owner
  /// anyway, and a commit saves the system calls that lock and unlock the shared index, which then
  /// is plain memory and leaves no `-shm` file.
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
