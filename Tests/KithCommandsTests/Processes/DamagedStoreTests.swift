import Foundation
import KithTerminal
import Testing

@testable import KithCommands

@Suite(
  .enabled(if: IndependentDevice.isPossible, "python3 or libsodium's library is missing"),
  .timeLimit(.minutes(5)))
struct DamagedStoreTests {
  /// Flips a bit in a sealed entry of a stopped device's database.
  private static let flip = """
    import sqlite3, sys
    path = sys.argv[1] + "/kith.sqlite"
    database = sqlite3.connect(path)
    (box,) = database.execute(
      "select entry_box from change_set where entry_box is not null limit 1").fetchone()
    database.execute("pragma wal_checkpoint(truncate)")
    database.close()
    content = bytearray(open(path, "rb").read())
    content[content.index(box) + 8] ^= 1
    open(path, "wb").write(content)
    """

  /// A store with a damaged entry was exported as if it were complete, and never mended.
  @Test func `damage is said, and another device gives back what is missing`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    for member in [alpha, beta] { try await household.start(member) }
    try await household.awaitFirstSync()
    for key in ["one", "two", "three"] {
      try await alpha.client.write([(key, .string(key))], in: Household.store)
    }
    try await household.settle()
    for member in [alpha, beta] { try await household.stop(member) }
    let whole = try await household.export(alpha)

    _ = try Shell.run(["python3", "-c", Self.flip, alpha.directory.path])
    let export = try await household.run(alpha, "export", "--json")
    #expect(export.status == CommandStatus.failure.rawValue && export.output != whole)
    #expect(export.talk.contains("damaged"), "\(export.talk)")
    let status = try await household.run(alpha, "status", "--json").output
    #expect(status.contains(/"damaged": ?true/), "\(status)")
    let doctor = try await household.run(alpha, "doctor")
    #expect(doctor.status == CommandStatus.unhealthy.rawValue, "\(doctor)")

    for member in [alpha, beta] { try await household.start(member) }
    try await eventually("what was damaged to come back", seconds: 60) {
      try await household.run(alpha, "export", "--json").output == whole
    }
    try await eventually("the store to be whole", seconds: 60) {
      try await household.run(alpha, "export", "--json").status == 0
    }
    for member in [alpha, beta] { try await household.stop(member) }
  }
}
