import GRDB
package import KithCore

/// The yardstick of `Tests/bench` for durable commits: a database opened as a device's is, with one
/// table of blobs.
package final class BareDatabase: @unchecked Sendable {
  // Unchecked: `statements` is touched only inside `queue`, which runs one closure at a time.

  private let path: String
  private let queue: DatabaseQueue
  private var statements: Statements?

  /// `path` must be free.
  package init(path: String) throws(StorageError) {
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

  package func commit(_ blob: [UInt8]) throws(StorageError) {
    do {
      try queue.unsafeReentrantWrite { _ in
        guard let statements else { throw StorageError.closed(path) }
        try statements.run(.begin)
        try statements.run(.putBare, bytes: blob)
        try statements.run(.commit)
      }
    } catch {
      throw .database(path, error)
    }
  }

  /// The files stay.
  package func close() throws(StorageError) {
    queue.unsafeReentrantWrite { _ in statements = nil }
    try Connection.close(queue, path: path)
  }
}
