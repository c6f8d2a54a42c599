import Foundation

@testable import KithCrypto
@testable import KithStorage
@testable import KithTerminal

/// The machine's own times for the parts of a synced write.
final class Yardsticks {
  /// The size of a small entry.
  private static let commitBytes = 256
  /// About the size of a small change set's header.
  private static let signedBytes = 220

  private let database: BareDatabase
  private let echo: LoopbackEcho
  private let key: SigningKey
  private let clock = ContinuousClock()

  private(set) var commits = Samples()
  private(set) var signs = Samples()
  private(set) var verifies = Samples()
  private(set) var roundTrips = Samples()

  /// Creates the directory, which must be on the measured disk.
  init(directory: URL) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    database = try BareDatabase(path: directory.appending(path: "bare.sqlite").path)
    echo = try LoopbackEcho()
    var entropy = SystemRandom()
    key = SigningKey(seed: SigningSeed(random: &entropy))
    for _ in 0..<20 { _ = echo.roundTrip() }
  }

  func forgetCommits() { commits = Samples() }

  func measureCommit() throws {
    let blob = [UInt8](repeating: 7, count: Self.commitBytes)
    let start = clock.now
    try database.commit(blob)
    commits.add(clock.now - start)
  }

  func measureAll() throws {
    try measureCommit()
    let message = [UInt8](
      repeating: UInt8(truncatingIfNeeded: signs.count), count: Self.signedBytes)
    let start = clock.now
    let signature = key.sign(message)
    let signed = clock.now
    let isValid = key.publicKey.isValid(signature, for: message)
    let verified = clock.now
    guard isValid else {
      throw CommandFailure(.failure, "a signature of the bench does not verify")
    }
    signs.add(signed - start)
    verifies.add(verified - signed)
    roundTrips.add(echo.roundTrip())
  }

  /// The parts from set to notification: commit, signature, check and half a round trip.
  var partsOfSync: Double {
    commits.median + signs.median + verifies.median + roundTrips.median / 2
  }

  func close() { echo.close() }
}
