import Foundation
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite(
  .enabled(if: IndependentDevice.isPossible, "python3 or libsodium's library is missing"),
  .timeLimit(.minutes(5)))
struct DamagedStoreTests {
  /// Flips a bit in the row that a stopped device's database got last of the shared ones: an entry.
  private static let flip = """
    import sqlite3, sys
    path = sys.argv[1] + "/kith.sqlite"
    database = sqlite3.connect(path)
    (box,) = database.execute(
      "select sealed from shared order by id desc limit 1").fetchone()
    database.execute("pragma wal_checkpoint(truncate)")
    database.close()
    content = bytearray(open(path, "rb").read())
    content[content.index(box) + 8] ^= 1
    open(path, "wb").write(content)
    """

  /// Two stopped members that hold the same three keys, and what both export.
  private func twoWithThreeKeys() async throws -> (
    Household, alpha: Household.Member, beta: Household.Member, export: String
  ) {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    for member in [alpha, beta] { try await household.start(member) }
    try await household.awaitMeeting()
    for key in ["one", "two", "three"] {
      try await alpha.client.write([(key, .string(key))], in: Household.store)
    }
    try await household.settle()
    for member in [alpha, beta] { try await household.stop(member) }
    return (household, alpha, beta, try await household.export(alpha))
  }

  /// A store with a damaged entry was exported as if it were complete, and never mended.
  @Test func `damage is said, and another device gives back what is missing`() async throws {
    let (household, alpha, beta, whole) = try await twoWithThreeKeys()
    _ = try Shell.run(["python3", "-c", Self.flip, alpha.directory.path])
    let export = try await household.run(alpha, "export", "--json")
    #expect(export.status == CommandStatus.failure.rawValue && export.output != whole)
    #expect(export.talk.contains("damaged"), "\(export.talk)")
    let status = try await household.run(alpha, "status", "--json").output
    #expect(status.contains(/"missing": {[^}]*"rows": ?1/), "\(status)")
    let table = try await household.run(alpha, "status").output
    #expect(table.contains("missing (1 damaged row)"), "\(table)")
    for look in [
      try await household.run(alpha, "ls"), try await household.run(alpha, "get", "three"),
    ] {
      #expect(look.talk.contains("damaged on this disk"), "\(look)")
    }
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
    #expect(try await household.run(alpha, "ls").talk.isEmpty)
  }

  /// Damages the root page of a table.
  private static let tear = """
    import sqlite3, sys
    path = sys.argv[1] + "/kith.sqlite"
    database = sqlite3.connect(path)
    (root,) = database.execute(
      "select rootpage from sqlite_schema where name = ?", (sys.argv[2],)).fetchone()
    database.execute("pragma wal_checkpoint(truncate)")
    database.close()
    with open(path, "r+b") as file:
      file.seek((root - 1) * 4096)
      file.write(b"\\xee")
    """

  /// The node refused its directory, and nothing mended it.
  @Test func `a damaged structure is mended at the next start`() async throws {
    let (household, alpha, beta, whole) = try await twoWithThreeKeys()
    _ = try Shell.run(["python3", "-c", Self.tear, alpha.directory.path, "shared"])
    let export = try await household.run(alpha, "export", "--json")
    #expect(export.status == CommandStatus.failure.rawValue && export.output != whole)
    let doctor = try await household.run(alpha, "doctor")
    #expect(doctor.status == CommandStatus.unhealthy.rawValue, "\(doctor)")
    #expect(doctor.output.contains("kith.sqlite.damaged-1"), "\(doctor)")
    for member in [alpha, beta] { try await household.start(member) }
    try await eventually("what was damaged to come back", seconds: 60) {
      let again = try await household.run(alpha, "export", "--json")
      return again.status == 0 && again.output == whole
    }
    for member in [alpha, beta] { try await household.stop(member) }
  }

  @Test func `unpublished writes that may be lost need a person's word`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    #expect(try await household.run(alpha, "set", "one", "1").status == 0)
    #expect(try await household.run(alpha, "doctor", "--repair").talk.contains("sound"))
    _ = try Shell.run(["python3", "-c", Self.tear, alpha.directory.path, "own"])
    for command in ["ls", "export", "run"] {
      let refused = try await household.run(alpha, command)
      #expect(refused.status == CommandStatus.failure.rawValue, "\(command): \(refused)")
      #expect(refused.talk.contains("kith doctor --repair"), "\(command): \(refused)")
    }
    let unasked = try await household.run(alpha, "doctor", "--repair")
    #expect(unasked.status == CommandStatus.refused.rawValue, "\(unasked)")
    let repaired = try await household.run(alpha, "doctor", "--repair", "--yes", "--json")
    #expect(repaired.status == 0 && repaired.output.contains(#""lacksOwn": true"#), "\(repaired)")
    #expect(try await household.run(alpha, "ls").status == 0)
    #expect(try await household.run(alpha, "set", "two", "2").status == 0)
  }

  /// Such a directory looked empty and healthy, and writes went elsewhere.
  @Test func `a device without its secrets is named by every command`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    #expect(try await household.run(alpha, "set", "one", "1").status == 0)
    let secrets = alpha.directory.appending(path: "secrets")
    let saved = try Data(contentsOf: secrets)
    try FileManager.default.removeItem(at: secrets)
    for command in [
      ["ls"], ["get", "one"], ["set", "one", "2"], ["status"], ["devices"], ["export"], ["run"],
      ["invite", "--yes"], ["account", "list"], ["account", "sign-out"],
      ["account", "create", "--name", "new"],
    ] {
      let refused = try await KithProcess.run(
        command + ["--directory", alpha.directory.path], in: household.root, input: Data())
      #expect(refused.status == CommandStatus.failure.rawValue, "\(command): \(refused)")
      #expect(
        refused.talk.contains("a device is here without its secrets"), "\(command): \(refused)")
    }
    let doctor = try await household.run(alpha, "doctor")
    #expect(doctor.status == CommandStatus.unhealthy.rawValue, "\(doctor)")
    #expect(doctor.output.contains("without its secrets"), "\(doctor)")
    try saved.write(to: secrets)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secrets.path)
    #expect(try await household.run(alpha, "get", "one").output == "1\n")
  }

  /// Nobody could say that a loss is a loss: `export` ended with an error for ever.
  @Test func `a loss is accepted once a person says so, and taken back if it comes`() async throws {
    let (household, alpha, beta, whole) = try await twoWithThreeKeys()
    _ = try Shell.run(["python3", "-c", Self.flip, alpha.directory.path])
    #expect(try await household.run(alpha, "export", "--json").status == 1)

    // Asked for on no terminal, nothing is done.
    let unasked = try await household.run(alpha, "doctor", "--accept-loss")
    #expect(unasked.status == CommandStatus.refused.rawValue, "\(unasked)")
    #expect(unasked.talk.contains("1 damaged row"), "\(unasked)")
    #expect(try await household.run(alpha, "export", "--json").status == 1)

    let accepted = try await household.run(alpha, "doctor", "--accept-loss", "--yes", "--json")
    #expect(accepted.status == 0, "\(accepted)")
    #expect(accepted.output.contains(/"rows": ?1/), "\(accepted)")
    let export = try await household.run(alpha, "export", "--json")
    #expect(export.status == 0 && export.output != whole, "\(export)")
    let status = try await household.run(alpha, "status", "--json").output
    #expect(!status.contains("\"missing\""))
    #expect(!status.contains("was damaged"), "\(status)")
    #expect(try await household.run(alpha, "ls").talk.isEmpty)
    // By a running node too, when nothing is left to accept.
    try await household.start(alpha)
    let again = try await household.run(alpha, "doctor", "--accept-loss", "--yes")
    #expect(again.status == 0 && again.talk.contains("Nothing is missing"), "\(again)")

    try await household.start(beta)
    try await eventually("what was given up to come back", seconds: 60) {
      try await household.run(alpha, "export", "--json").output == whole
    }
    for member in [alpha, beta] { try await household.stop(member) }
  }
}
