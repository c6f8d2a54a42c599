import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite(.enabled(if: Disk.isPossible, "file systems cannot be mounted here"))
  struct FullDiskTests {
    /// A device on a file system in memory of 6 MiB, which a file beside it fills. Writes fail with
    /// the cause, reads go on, `kith status` says so, other devices go on, and once there is room the
    /// node takes writes by itself. Nothing acknowledged is lost, and nothing that failed is there.
    @Test func `on a full disk writes fail, reads go on, and it mends itself`() async throws {
      let seed = testSeed("full disk")
      let household = try Household()
      let directory = household.root.appending(path: "disk")
      // As root no quota or permission of files would do.
      household.mounts.append(try Mount.temporary(directory, bytes: 6 << 20))
      let full = try await household.create("full", in: directory.appending(path: "device"))
      let other = try await household.join("other")
      for member in household.members { try await household.start(member) }
      try await household.awaitMeeting()
      let ledger = Ledger()
      let filler = directory.appending(path: "filler").path
      var rounds = 0
      let writers = household.members.indices.map { index in
        Writer(
          client: household.members[index].client, node: index, seed: seed &+ UInt64(index),
          largeRate: nil)
      }
      try await ledger.whileWriting(writers) {
        for round in 0..<3 {
          try await Task.sleep(for: .milliseconds(300))
          let before = try await full.client.values(in: "calm")
          let filler = Filler(filler)
          try await eventually("a write to fail") { ledger.failures.count > rounds }
          // The node gives room back by emptying its log, until the filler has that too.
          var fullSince = ContinuousClock.now
          try await eventually("the disk to stay full") {
            if try await full.client.status().problems.isEmpty { fullSince = .now }
            return ContinuousClock.now - fullSince > .milliseconds(1_500)
          }
          rounds = ledger.failures.count
          #expect(try await full.client.values(in: "calm") == before)
          let status = try await household.run(full, "status")
          #expect(status.output.contains("the disk is full"), "\(status)")
          let value = PropertyListValue.integer(Int64(round))
          await #expect(throws: KithError.self) {
            try await full.client.write([("failed.\(round)", value)], in: "calm")
          }
          // The other device goes on.
          try await other.client.write([("round", value)], in: "calm")
          #expect(full.process?.isRunning == true)
          try await filler.remove()
          let roomSince = ContinuousClock.now
          try await eventually("it to mend itself", seconds: 45) {
            try await full.client.status().problems.isEmpty
          }
          let mended = ContinuousClock.now - roomSince
          try await eventually("it to catch up", seconds: 60) {
            try await full.client.value(forKey: "round", in: "calm") == value
          }
          print(
            "full disk: takes writes \(mended) after there is room, and has caught up after "
              + "\(ContinuousClock.now - roomSince)")
          try await full.client.write([("mended.\(round)", value)], in: "calm")
        }
      }
      let journal = try #require(full.process).saidSoFar
      #expect(journal.contains("error kith: ") && journal.contains("a commit failed"))
      #expect(journal.contains("commits succeed again"))
      let settled = try await household.settle()
      let outcome = try await household.outcome()
      let history = ledger.history
      let problems = history.problems(outcome) + Self.failedButThere(history, outcome)
      for member in household.members {
        let calm = try await member.client.values(in: "calm")
        #expect(calm.keys.allSatisfy { !$0.text.hasPrefix("failed") } && calm.count == 4)
      }
      print(
        "full disk: \(ledger.acknowledged) writes acknowledged, \(ledger.failures.count) failed, "
          + "settled after \(settled)")
      #expect(ledger.failures.allSatisfy { $0 == "diskFull" }, "\(Set(ledger.failures))")
      expectNone(problems, seed: seed)
      try await Self.restartsAndShowsTheSame(household, full)
    }

    /// Without a node nothing could be read: opening the directory wrote to it.
    @Test func `on a full disk commands read without a node, and keep nothing`() async throws {
      let household = try Household()
      let directory = household.root.appending(path: "disk")
      household.mounts.append(try Mount.temporary(directory, bytes: 1 << 20))
      let member = try await household.create("full", in: directory.appending(path: "device"))
      #expect(try await household.run(member, "set", "theme", "dark").status == 0)
      let folder = household.root.appending(path: "carrier").path
      let added = try await household.run(
        member, "carrier", "add", "folder", folder, "--yes", "--no-wait")
      #expect(added.status == 0, "\(added)")
      let whole = try await household.run(member, "export").output
      let files = try Self.content(of: member.directory)
      let filler = Filler(directory.appending(path: "filler").path)
      try await Task.sleep(for: .milliseconds(200))
      #expect(try await household.run(member, "get", "theme").output == "dark\n")
      #expect(try await household.run(member, "export").output == whole)
      for command in ["ls", "status", "history", "unshown", "stores", "devices", "clock"] {
        let shown = try await household.run(member, command)
        #expect(shown.status == 0, "\(command): \(shown)")
      }
      #expect(try await household.run(member, "status").output.contains("the disk is full"))
      #expect(try await household.run(member, "doctor").output.contains("opened"))
      // A copy of the database knows the carriers, and a trial keeps nothing here.
      let checked = try await household.run(member, "carrier", "check")
      #expect(checked.status == 0, "\(checked)")
      for command in [["set", "theme", "light"], ["rm", "theme"]] {
        let refused = try await KithProcess.run(
          command + ["--directory", member.directory.path], in: household.root)
        #expect(refused.status == CommandStatus.failure.rawValue, "\(refused)")
        #expect(refused.talk.contains("reads work") && refused.talk.contains("free some"))
      }
      #expect(try await household.run(member, "get", "theme").output == "dark\n")
      try await filler.remove()
      #expect(try Self.content(of: member.directory)["kith.sqlite"] == files["kith.sqlite"])
      #expect(try await household.run(member, "rm", "theme").status == 0)
    }

    private static func content(of directory: URL) throws -> [String: Data] {
      let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
      return try Dictionary(
        uniqueKeysWithValues: names.map {
          ($0, try Data(contentsOf: directory.appending(path: $0)))
        })
    }

    /// The database's log grows to 8 MiB before it begins anew, if there is that much space.
    @Test func `a disk with less room than the log takes is not full of the log`() async throws {
      let household = try Household()
      let directory = household.root.appending(path: "disk")
      household.mounts.append(try Mount.temporary(directory, bytes: 3 << 20))
      let member = try await household.create("small", in: directory.appending(path: "device"))
      try await household.start(member)
      for number in 0..<300 {
        let value = PropertyListValue.data(Data(repeating: UInt8(number % 256), count: 20_000))
        try await member.client.write([("value", value)], in: Household.store)
      }
      #expect(try await member.client.status().problems.isEmpty)
    }

    /// A file that takes all the room that there is, to the last byte, and all that is given back.
    private struct Filler {
      let path: String
      private let filling: Task<Void, any Error>

      init(_ path: String) {
        self.path = path
        filling = Task.detached {
          let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
          defer { close(descriptor) }
          while !Task.isCancelled {
            for size in [65_536, 4_096, 1] {
              let bytes = [UInt8](repeating: 1, count: size)
              while write(descriptor, bytes, size) > 0 {}
            }
            try await Task.sleep(for: .microseconds(200))
          }
        }
      }

      func remove() async throws {
        filling.cancel()
        _ = await filling.result
        try FileManager.default.removeItem(atPath: path)
      }
    }

    static func failedButThere(_ history: History, _ outcome: History.Outcome) -> [String] {
      history.writes.filter { write in
        guard !write.isAcknowledged, let value = write.value else { return false }
        let key = KeyValueStore.Key(write.key)
        return outcome.shown[key] == value || outcome.hidden[key] == value
      }.map { "\($0.key) of transaction \($0.transaction) failed, and is there" }
    }

    static func restartsAndShowsTheSame(
      _ household: Household, _ member: Household.Member
    ) async throws {
      let before = try await household.export(member)
      try await household.stop(member, SIGKILL)
      try await household.start(member)
      #expect(try await household.export(member) == before)
    }
  }
}

extension Faults {
  /// Members that fill a node: `Tests/Member/fill.py`, written along the protocol page, makes stores
  /// under the largest limits and publishes more in them than a node keeps of one author.
  @Suite(.enabled(if: IndependentDevice.isPossible, "python3 or libsodium's library is missing"))
  struct FillTests {
    /// The budgets: resident memory, disk, and the time to start.
    static let memoryBytes = 200 << 20
    static let diskBytes = 512 << 20

    @Test func `floods of several authors leave memory, disk and the time to start bounded`()
      async throws
    {
      let authors = Faults.number("KITH_FILL_AUTHORS", or: 3)
      let megabytes = Faults.number("KITH_FILL_MEGABYTES", or: 40)
      let household = try Household()
      let victim = try await household.create("victim")
      var directories: [String] = []
      for number in 0..<authors {
        directories.append(try await household.join("liar \(number)").directory.path)
      }
      try await household.start(victim)
      // More than the budget of memory: without bounds all of it would be kept.
      let offered = authors * 2 * megabytes * 1_000_000
      let filler = try IndependentDevice.start(
        "fill.py", ["\(victim.port)", "2", "\(megabytes)"] + directories, in: household.root)
      let filled = try await filler.wait(seconds: 900)
      try #require(filled.status == 0 && filled.output.contains("filled"), "\(filled.talk)")

      let running = try #require(try peak(of: victim))
      let disk = try size(of: victim.directory)
      try await household.stop(victim)
      let began = ContinuousClock.now
      try await household.start(victim)
      let start = ContinuousClock.now - began
      let restarted = try #require(try peak(of: victim))
      print(
        "filled by \(authors) with \(offered >> 20) MiB: VmHWM \(running >> 20) MiB, directory "
          + "\(disk >> 20) MiB, started again in \(start), VmHWM then \(restarted >> 20) MiB")
      // Something was kept, or nothing was shown.
      #expect(disk > 10 << 20)
      #expect(running < Self.memoryBytes && restarted < Self.memoryBytes)
      #expect(disk < Self.diskBytes)
      // The budget is 2 s for a release build on a machine that does nothing else.
      #expect(start < .milliseconds(Faults.number("KITH_START_MILLISECONDS", or: 20_000)))
      try await victim.client.write([("after", .integer(1))], in: Household.store)
    }

    /// The most resident memory that a node ever had, in bytes.
    private func peak(of member: Household.Member) throws -> Int? {
      let process = try #require(member.process?.id)
      let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
      return status.firstMatch(of: /VmHWM:\s+([0-9]+) kB/).flatMap { Int($0.1) }.map { $0 << 10 }
    }

    private func size(of directory: URL) throws -> Int {
      try FileManager.default.contentsOfDirectory(
        at: directory, includingPropertiesForKeys: [.fileSizeKey]
      ).reduce(0) { try $0 + ($1.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) }
    }
  }
}
