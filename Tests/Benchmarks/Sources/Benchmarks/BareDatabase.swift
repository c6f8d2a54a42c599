@testable import KithCore
@testable import KithStorage

/// The yardstick for durable commits: a database opened as a device's is, with one table of blobs.
/// The files stay.
final class BareDatabase {
  private let begin: Statement
  private let put: Statement
  private let commit: Statement

  /// `path` must be free.
  init(path: String) throws(StorageError) {
    let connection = try Schema.open(path)
    try connection.execute(
      "CREATE TABLE bare (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT")
    begin = try connection.prepare("BEGIN IMMEDIATE")
    put = try connection.prepare("INSERT INTO bare (value) VALUES (?)")
    commit = try connection.prepare("COMMIT")
  }

  func commit(_ blob: [UInt8]) throws(StorageError) {
    try begin.run()
    try put.run(bytes: blob)
    try commit.run()
  }
}
