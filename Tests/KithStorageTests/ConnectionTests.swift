import Glibc
import KithCore
import KithTestSupport
import Testing

@testable import KithStorage

/// SQLite's own interface, as far as Kith uses it.
@Suite struct ConnectionTests {
  private let directory: TestDirectory
  private var path: String { directory.path + "/database" }

  init() throws { directory = try TestDirectory() }

  @Test func `bytes come back as they were bound, and none are not null`() throws {
    let connection = try Connection()
    try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT")
    let put = try connection.prepare("INSERT INTO t VALUES (?, ?)")
    let values: [[UInt8]] = [[1, 0, 255], [], [UInt8](repeating: 7, count: 100_000)]
    for (id, value) in values.enumerated() { try put.run(id: Int64(id), bytes: value) }
    var found: [[UInt8]] = []
    try connection.read("SELECT value FROM t ORDER BY id") { found.append($0.bytes(0)) }
    #expect(found == values)
    // A statement that failed can run again, and keeps no parameter.
    #expect(throws: StorageError.self) { try put.run(id: 0, bytes: [1]) }
    #expect(throws: StorageError.self) { try put.run(id: 9) }
    try put.run(id: 9, bytes: [1])
  }

  @Test func `a transaction that fails changes nothing`() throws {
    let statements = Statements(try Connection())
    try Schema.prepare(statements, isNew: true)
    #expect(throws: StorageError.closed("x")) {
      try statements.transaction { () throws(StorageError) in
        try statements.put([1], 1, in: .own)
        throw .closed("x")
      }
    }
    #expect(!statements.connection.isInTransaction)
    #expect(try statements.connection.integer("SELECT count(*) FROM own") == 0)
  }

  @Test func `errors have the path, and SQLite's extended code`() throws {
    let connection = try Connection(path: path)
    try connection.execute("CREATE TABLE t (value BLOB NOT NULL)")
    let error = #expect(throws: StorageError.self) {
      try connection.execute("INSERT INTO t VALUES (NULL)")
    }
    #expect(error?.code == .inputOutput)
    #expect(error?.path == path)
    // SQLITE_CONSTRAINT_NOTNULL
    #expect(error?.message == "NOT NULL constraint failed: t.value (SQLite code 1299)")
    #expect(throws: StorageError.self) { try Connection(path: path + "/below") }
  }

  /// The error spoke of the modes of files.
  @Test func `too many open files are no matter of modes`() {
    let error = StorageError.system("open it", "/d/kith.sqlite", errno: EMFILE)
    #expect(error.code == .inputOutput && error.message.contains("ulimit -n"), "\(error)")
  }

  @Test func `a connection closes with its last statement`() throws {
    var connection: Connection? = try Schema.open(path)
    try connection?.execute("CREATE TABLE t (value BLOB)")
    var put = try connection?.prepare("INSERT INTO t VALUES (?)")
    connection = nil
    try put?.run(bytes: [1])
    // Locked, and nobody waits.
    let error = #expect(throws: StorageError.self) {
      try Connection(path: path).integer("SELECT count(*) FROM t")
    }
    #expect(error?.message == "database is locked (SQLite code 5)")
    put = nil
    #expect(try Connection(path: path).integer("SELECT count(*) FROM t") == 1)
  }

  @Test(arguments: [
    ("/a/b", "/a"), ("/a/b//", "/a"), ("/a//b", "/a"), ("/a", "/"), ("/", "/"), ("a", ""),
    ("a/b", "a"), ("", ""),
  ])
  func `a path has a parent`(_ path: String, _ parent: String) {
    #expect(Files.parent(of: path) == parent)
  }
}
