import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  /// Root may write against the modes, so it is the file system that refuses.
  @Suite(.enabled(if: Disk.isPossible, "file systems cannot be mounted here"))
  struct ReadOnlyTests {
    @Test func `a node does not start on a read-only file system, and says why`() async throws {
      let household = try Household()
      let directory = household.root.appending(path: "disk")
      let mount = try Mount.temporary(directory, bytes: 16 << 20)
      household.mounts.append(mount)
      let member = try await household.create("alpha", in: directory.appending(path: "device"))
      #expect(try await household.run(member, "set", "old", "value").status == 0)
      try mount.remount("ro")
      for command in [["run", "--listen", "127.0.0.1", "--port", "0"], ["set", "key", "value"]] {
        let refused = try await KithProcess.run(
          command + ["--directory", member.directory.path], in: household.root)
        #expect(refused.status == CommandStatus.failure.rawValue, "\(refused)")
        #expect(refused.talk.contains("Read-only file system"), "\(refused)")
      }
      // Reading needs no write.
      #expect(try await household.run(member, "get", "old").output == "value\n")
      let file = household.root.appending(path: "settings.json").path
      try Data("{\"a\": 1}".utf8).write(to: URL(filePath: file))
      for command in [
        "ls", "status", "export", "history", "stores", "devices", "doctor", "account list",
        "import \(file) --dry-run",
      ] {
        let words = command.split(separator: " ").map(String.init)
        let shown = try await KithProcess.run(
          words + ["--directory", member.directory.path], in: household.root)
        let expected: CommandStatus = command == "doctor" ? .unhealthy : .success
        #expect(shown.status == expected.rawValue, "\(command): \(shown)")
      }
      try mount.remount("rw")
      try await household.start(member)
      #expect(try await member.client.values(in: Household.store) == ["old": "value"])
    }

    /// The files of a running node become immutable, and writable again.
    @Test func `a node whose files take no writes serves reads, and mends itself`() async throws {
      let disk = try Disk()
      let (household, member) = (disk.household, try await disk.member())
      try await household.start(member)
      try await member.client.write([("old", "value")], in: Household.store)
      let files = ["kith.sqlite", "kith.sqlite-wal"].map { member.directory.path + "/" + $0 }
      try Shell.run(["chattr", "+i"] + files)
      defer { _ = try? Shell.run(["chattr", "-i"] + files) }
      try await expectReadOnly(household, member)
      try Shell.run(["chattr", "-i"] + files)
      try await eventually("it to mend itself", seconds: 45) {
        try await member.client.status().problems.isEmpty
      }
      try await member.client.write([("new", "value")], in: Household.store)
      try await household.stop(member, SIGKILL)
      try await household.start(member)
      let values = try await member.client.values(in: Household.store)
      #expect(values == ["old": "value", "new": "value"])
    }

    /// As Linux does when a disk fails: the file system refuses all writes until it is mounted anew.
    ///
    /// Nothing is being written at that moment: ext4 itself may call an `fdatasync` that is under way
    /// a success although it is lost (seen in one of ten tries of a plain program).
    @Test func `a file system that turned read-only keeps what was acknowledged`() async throws {
      let seed = testSeed("read-only")
      let disk = try Disk()
      let (household, member) = (disk.household, try await disk.member())
      try await household.start(member)
      let ledger = Ledger()
      let writer = Writer(client: member.client, node: 0, seed: seed, largeRate: nil)
      try await ledger.whileWriting([writer]) {
        try await eventually("some writes") { ledger.acknowledged > 200 }
      }
      try disk.mount.remount("abort")
      try await expectReadOnly(household, member)
      try await household.stop(member, SIGKILL)
      try disk.mountAnew()
      try await household.start(member)
      let problems = ledger.history.problems(try await household.outcome())
      print("read-only: \(ledger.acknowledged) writes acknowledged")
      expectNone(problems, seed: seed)
    }

    private func expectReadOnly(_ household: Household, _ member: Household.Member) async throws {
      let before = try await member.client.values(in: Household.store)
      let error = await #expect(throws: KithError.self) {
        try await member.client.write([("failed", true)], in: Household.store)
      }
      #expect(error?.code == .readOnly, "\(String(describing: error))")
      #expect(try await member.client.values(in: Household.store) == before)
      let status = try await household.run(member, "status")
      #expect(status.output.contains("cannot be written"), "\(status)")
      #expect(member.process?.isRunning == true)
    }
  }

  /// A device on an ext4 of its own, in a file.
  final class Disk {
    let household: Household
    let image: URL
    private let directory: URL
    private(set) var mount: Mount

    init(megabytes: Int = 32) throws {
      household = try Household()
      image = household.root.appending(path: "image")
      directory = household.root.appending(path: "disk")
      try Shell.run("truncate", "-s", "\(megabytes)M", image.path)
      try Shell.run("mkfs.ext4", "-q", "-F", image.path)
      mount = try Mount.image(image, at: directory)
      household.mounts.append(mount)
    }

    /// Whether this user and host may mount file systems.
    static let isPossible = NamespaceSet.canMake { _ in _ = try Disk() }

    /// The device; call it once.
    func member() async throws -> Household.Member {
      try await household.create("alpha", in: directory.appending(path: "device"))
    }

    /// Unmounts and mounts, as after a restart of the host.
    func mountAnew() throws {
      mount.unmount()
      mount = try Mount.image(image, at: directory)
      household.mounts.append(mount)
    }
  }
}
