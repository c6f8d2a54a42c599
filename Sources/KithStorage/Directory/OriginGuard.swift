import KithCore
import KithCrypto

/// Detects a copied or restored database by file identity and generation
/// (`Docs/Decisions/file-identity.md`).
///
/// The database has two generations: the lock file's, and the next, which the lock file gets once
/// the database is durable. So a crash in between looks like no copy. A copy stays one until it
/// takes a new incarnation (`Docs/Protocol.md`, "Copies"). The storage commits the mutations that it
/// returns.
final class OriginGuard {
  private let identity: FileIdentity
  private let lock: DirectoryLock
  /// Not in the lock file yet.
  private var next: Digest128?
  private(set) var isCopy: Bool

  /// `known` and `generations`: the rows of the database.
  init(
    identity: FileIdentity, lock: DirectoryLock, isNew: Bool, known: [UInt8]?,
    generations: [UInt8]?
  ) {
    self.identity = identity
    self.lock = lock
    isCopy = !isNew && Self.isCopy(identity, lock, known, generations)
  }

  /// Puts this file's identity and a new generation.
  func settle() -> [Mutation] {
    [.put(.storage(.fileIdentity), identity.bytes)] + renew()
  }

  /// Puts a new generation.
  func renew() -> [Mutation] {
    var random = SystemRandom()
    let next = random.draw(Digest128.self)
    let last = lock.generation ?? next
    self.next = next
    return [.put(.storage(.generations), last.bytes + next.bytes)]
  }

  /// Called after the transaction is durable. If writing fails, the database still knows the lock
  /// file's generation.
  func publish() {
    guard let next else { return }
    self.next = nil
    isCopy = false
    try? lock.write(next)
  }

  /// Makes the database count as a copy, also for the next process: peers may have what a failed
  /// commit lost. Nothing needs to be synced, because the next run of the host knows without it.
  func disown() {
    var random = SystemRandom()
    isCopy = true
    try? lock.write(random.draw())
  }

  private static func isCopy(
    _ identity: FileIdentity, _ lock: DirectoryLock, _ known: [UInt8]?, _ generations: [UInt8]?
  ) -> Bool {
    guard let known = known.flatMap({ FileIdentity($0) }), let generations,
      generations.count == 32, let present = lock.generation
    else { return true }
    let isKnown =
      generations.prefix(16).elementsEqual(present.bytes)
      || generations.suffix(16).elementsEqual(present.bytes)
    return !isKnown || !identity.matches(known)
  }
}
