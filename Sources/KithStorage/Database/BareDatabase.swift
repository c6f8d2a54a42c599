import GRDB
public import KithCore

/// The yardstick of durable commits: a database opened exactly as a device's is, with one table of
/// blobs. `kith bench` measures real commits against it, on the same disk in the same run.
public final class BareDatabase: @unchecked Sendable {
  // Unchecked: `statements` is touched only inside `queue`, which runs one closure at a time.

  private let path: String
  private let queue: DatabaseQueue
  private var statements: Statements?

  /// Creates the database at `path`, where no file may be.
  public init(path: String) throws(StorageError) {
    self.path = path
    queue = try Connection.open(path)
    do {
      statements = try queue.writeWithoutTransaction { database in
        try database.execute(
          sql: "CREATE TABLE bare (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT")
        return Statements(database)
      }
    } catch {
      throw .database(path, error)
    }
  }

  /// Inserts one row, durably.
  public func commit(_ blob: [UInt8]) throws(StorageError) {
    do {
      try queue.unsafeReentrantWrite { _ in
        guard let statements else { throw StorageError.closed(path) }
        try statements.run("BEGIN IMMEDIATE")
        try statements.run("INSERT INTO bare (value) VALUES (?)", blob.blob)
        try statements.run("COMMIT")
      }
    } catch {
      throw .database(path, error)
    }
  }

  /// Closes the database; the files stay.
  public func close() throws(StorageError) {
    queue.unsafeReentrantWrite { _ in statements = nil }
    try Connection.close(queue, path: path)
  }
}
