import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  /// The possible states of a disk after the power went. Each state is opened unrepaired, and must
  /// hold every write that was acknowledged before.
  @Suite struct PowerCutTests {
    /// A copy of a directory's files at an instant at which its node stood still.
    private struct Photo {
      let database: Data
      let log: Data
      let taken: Stop
    }

    /// When a node was stopped.
    private struct Stop {
      /// A write that was acknowledged before this must be there.
      let before: ContinuousClock.Instant
      /// A write that begins after this cannot be there.
      let after: ContinuousClock.Instant
    }

    /// A state of the disk, opened.
    private struct Finding {
      let name: String
      let outcome: History.Outcome
      let acknowledgedBy: ContinuousClock.Instant
      let begunBy: ContinuousClock.Instant
    }

    /// Stops the node for an instant again and again while it is written to, and copies its files:
    /// a power cut leaves these files if the system had written everything. Bytes that were not
    /// synced may be missing or torn, so the states between two photos are tried as well: the log
    /// cut off, or followed by garbage, anywhere after the last commit of the first photo. The
    /// states in the middle of a checkpoint are tried too: any of the log's pages in the database
    /// already, some of them torn.
    @Test func `the disk after a power cut holds every acknowledged write`() async throws {
      let seed = testSeed("power cut")
      let rounds = Faults.number("KITH_POWER_CUTS", or: 12)
      let household = try Household()
      let alpha = try await household.create("alpha")
      _ = try await household.join("beta")
      for member in household.members { try await household.start(member) }
      try await household.awaitMeeting()
      let ledger = Ledger()
      let writers = household.members.indices.map { index in
        Writer(
          client: household.members[index].client, node: index, seed: seed &+ UInt64(index),
          pause: .zero, largeRate: 15)
      }
      var random = SeededGenerator(seed: seed &+ 100)
      var findings: [Finding] = []
      var cuts = 0
      try await ledger.whileWriting(writers) {
        for round in 0..<rounds {
          try await Task.sleep(for: .milliseconds(Int.random(in: 1...60, using: &random)))
          let first = try await photo(of: alpha)
          try await Task.sleep(for: .milliseconds(Int.random(in: 1...60, using: &random)))
          let second = try await photo(of: alpha)
          try await open(
            "photo \(round)", first.database, first.log, alpha, household, first.taken.before,
            first.taken.after, &findings)
          guard let before = WriteAheadLog(first.log), let after = WriteAheadLog(second.log)
          else { continue }
          try await open(
            "checkpoint in round \(round)", checkpointing(first.database, before, &random),
            first.log, alpha, household, first.taken.before, first.taken.after, &findings)
          guard before.salts == after.salts else { continue }
          // Bytes that were appended after the first photo may be there or not.
          let end = before.endOfLastCommit
          let cut = Int.random(in: end...max(end, after.bytes.count), using: &random)
          var torn = Data(after.bytes.prefix(cut))
          if Bool.random(using: &random) {
            torn += Data((0..<6_000).map { _ in UInt8.random(in: 0...255, using: &random) })
          }
          try await open(
            "log cut at \(cut) of \(after.bytes.count) in round \(round)", first.database, torn,
            alpha, household, first.taken.before, second.taken.after, &findings)
          cuts += 1
        }
      }
      let problems = findings.flatMap { finding in
        Self.problems(ledger.history, finding).map { "\(finding.name): \($0)" }
      }
      print(
        "power cut: \(findings.count) states opened, \(cuts) of them with a log cut off, "
          + "\(rounds) in a checkpoint; \(ledger.acknowledged) writes acknowledged")
      #expect(cuts > rounds / 3)
      expectNone(problems, seed: seed)
    }

    /// The device on a file system of its own, in a file. At an instant the file holds the synced
    /// data, and the data that the system happened to write. Copies of it are mounted, which
    /// replays the file system's journal, and opened.
    @Test(.enabled(if: Disk.isPossible, "file systems cannot be mounted here"))
    func `every acknowledged write had reached the disk`() async throws {
      let seed = testSeed("power cut of a disk")
      let rounds = Faults.number("KITH_POWER_CUTS", or: 12) / 3
      let disk = try Disk()
      let (household, member) = (disk.household, try await disk.member())
      try await household.start(member)
      let ledger = Ledger()
      let writer = Writer(client: member.client, node: 0, seed: seed, largeRate: nil)
      var random = SeededGenerator(seed: seed &+ 100)
      var findings: [Finding] = []
      try await ledger.whileWriting([writer]) {
        for round in 0..<rounds {
          try await Task.sleep(for: .milliseconds(Int.random(in: 20...200, using: &random)))
          let copy = household.root.appending(path: "copy")
          let taken = try await whileStopped(member) {
            // Until two copies agree, the system was still writing of its own.
            repeat {
              try Shell.run("cp", "--sparse=always", disk.image.path, copy.path)
            } while (try? Shell.run("cmp", disk.image.path, copy.path)) == nil
          }
          let place = household.root.appending(path: "copied")
          let mount = try Mount.image(copy, at: place)
          defer { mount.unmount() }
          let outcome = try await Self.outcome(of: place.appending(path: "device").path, 1)
          findings.append(
            Finding(
              name: "disk \(round)", outcome: outcome, acknowledgedBy: taken.before,
              begunBy: taken.after))
        }
      }
      let problems = findings.flatMap { finding in
        Self.problems(ledger.history, finding).map { "\(finding.name): \($0)" }
      }
      print("power cut of a disk: \(findings.count), \(ledger.acknowledged) writes acknowledged")
      expectNone(problems, seed: seed)
    }

    /// Does something while a node stands still; gives the moment before it was stopped.
    private func whileStopped(
      _ member: Household.Member, _ body: () throws -> Void
    ) async throws -> Stop {
      let before = ContinuousClock.now
      member.process?.send(SIGSTOP)
      defer { member.process?.send(SIGCONT) }
      try await eventually("\(member.name) to stop") { member.process?.state == "T" }
      try body()
      return Stop(before: before, after: .now)
    }

    private func photo(of member: Household.Member) async throws -> Photo {
      let (database, log) = (
        member.directory.appending(path: "kith.sqlite"),
        member.directory.appending(path: "kith.sqlite-wal")
      )
      var files: (Data, Data) = (Data(), Data())
      let taken = try await whileStopped(member) {
        files = (try Data(contentsOf: database), try Data(contentsOf: log))
      }
      return Photo(database: files.0, log: files.1, taken: taken)
    }

    /// A database into which some of the log's pages have been copied.
    private func checkpointing(
      _ database: Data, _ log: WriteAheadLog, _ random: inout SeededGenerator
    ) -> Data {
      var mixed = database
      for page in log.pages where Bool.random(using: &random) {
        let isTorn = Int.random(in: 0..<8, using: &random) == 0
        let bytes = isTorn ? page.bytes.prefix(page.bytes.count / 2) : page.bytes
        let start = (page.number - 1) * page.bytes.count
        if mixed.count < start + page.bytes.count {
          mixed += Data(count: start + page.bytes.count - mixed.count)
        }
        mixed.replaceSubrange(start..<start + bytes.count, with: bytes)
      }
      return mixed
    }

    private func open(
      _ name: String, _ database: Data, _ log: Data, _ member: Household.Member,
      _ household: Household, _ acknowledgedBy: ContinuousClock.Instant,
      _ begunBy: ContinuousClock.Instant, _ findings: inout [Finding]
    ) async throws {
      let copy = household.root.appending(path: "photo")
      defer { try? FileManager.default.removeItem(at: copy) }
      try FileManager.default.createDirectory(
        at: copy, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      for file in ["secrets", "lock"] {
        try FileManager.default.copyItem(
          at: member.directory.appending(path: file), to: copy.appending(path: file))
      }
      for (file, bytes) in [("kith.sqlite", database), ("kith.sqlite-wal", log)] {
        _ = FileManager.default.createFile(
          atPath: copy.appending(path: file).path, contents: bytes,
          attributes: [.posixPermissions: 0o600])
      }
      let outcome = try await Self.outcome(of: copy.path, 2)
      findings.append(
        Finding(name: name, outcome: outcome, acknowledgedBy: acknowledgedBy, begunBy: begunBy))
    }

    /// The shown, hidden and refused values of a directory.
    private static func outcome(of path: String, _ nodes: Int) async throws -> History.Outcome {
      var configuration = Node.Configuration(directory: path)
      // Opening a copy is expected here; a node logs it at info.
      configuration.logger.logLevel = .warning
      let node = try await Node.open(configuration)
      defer { try? node.close() }
      let store = try node.store(Household.store)
      var hidden: [KeyValueStore.Key: PropertyListValue] = [:]
      for entry in try store.hiddenEntries { hidden[entry.key] = entry.value }
      let refused = try store.refusals.flatMap(\.writes).map {
        History.Outcome.name($0.key.text, $0.value)
      }
      // The refusals that the other node reported are not in this one's files.
      let others = Array(repeating: Set<String>(), count: nodes - 1)
      return History.Outcome(
        shown: store.dictionary, hidden: hidden, refused: [Set(refused)] + others)
    }

    /// Of the history only what had begun counts; and only what this node had acknowledged must be
    /// there.
    private static func problems(_ history: History, _ finding: Finding) -> [String] {
      var history = history
      history.writes.removeAll { $0.began > finding.begunBy }
      for index in history.writes.indices {
        let write = history.writes[index]
        history.writes[index].isAcknowledged =
          write.isAcknowledged && write.node == 0 && write.ended <= finding.acknowledgedBy
      }
      return history.problems(finding.outcome)
    }
  }
}
