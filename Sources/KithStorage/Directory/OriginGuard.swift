import GRDB
import KithCore
import KithCrypto

/// Detects a copied or restored database by file identity and generation
/// (`Docs/Decisions/file-identity.md`).
///
/// The database has two generations: the lock file's, and the next, which the lock file gets once
/// the database is durable. So a crash in between looks like no copy. A copy stays one until it
/// takes a new incarnation (`Docs/Protocol.md`, "Copies"). Used on the storage's queue.
final class OriginGuard {
  private let identity: FileIdentity
  private let lock: DirectoryLock
  /// Not in the lock file yet.
  private var next: Digest128?
  private(set) var isCopy: Bool

  init(
    identity: FileIdentity, database: Database, lock: DirectoryLock, statements: Statements,
    isNew: Bool
  ) throws {
    self.identity = identity
    self.lock = lock
    isCopy = try !isNew && Self.isCopy(identity, database, lock)
    if isCopy { return }
    if isNew {
      try settle(statements)
    } else {
      try renew(statements)
    }
    publish()
  }

  /// Writes this file's identity and a new generation, in the caller's transaction.
  func settle(_ statements: Statements) throws {
    try Meta.set(.fileIdentity, identity.bytes, statements)
    try renew(statements)
  }

  /// Writes a new generation, in the caller's transaction.
  func renew(_ statements: Statements) throws {
    var random = SystemRandom()
    let next = random.draw(Digest128.self)
    let last = lock.generation ?? next
    try Meta.set(.generations, last.bytes + next.bytes, statements)
    self.next = next
  }

  /// Called after the transaction is durable. If writing fails, the database still knows the lock
  /// file's generation.
  func publish() {
    guard let next else { return }
    self.next = nil
    isCopy = false
    try? lock.write(next)
  }

  private static func isCopy(
    _ identity: FileIdentity, _ database: Database, _ lock: DirectoryLock
  ) throws -> Bool {
    guard let known = try Meta.get(.fileIdentity, database).flatMap({ FileIdentity($0) }),
      let generations = try Meta.get(.generations, database), generations.count == 32,
      let present = lock.generation
    else { return true }
    let isKnown =
      generations.prefix(16).elementsEqual(present.bytes)
      || generations.suffix(16).elementsEqual(present.bytes)
    return !isKnown || !identity.matches(known)
  }
}
