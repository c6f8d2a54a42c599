import Foundation
import Glibc
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  /// `kith doctor`, on hosts that are healthy and that are not.
  @Suite struct DoctorTests {
    private struct Answer: Decodable {
      struct Finding: Decodable {
        var check: String
        var verdict: String
        var seen: String
        var advice: String?
      }
      var findings: [Finding]
      var healthy: Bool

      func problems(of check: String) -> [Finding] {
        findings.filter { $0.check == check && $0.verdict == "problem" }
      }
    }

    /// Asks the doctor, who must end with the status that goes with the answer.
    private func ask(
      _ household: Household, _ directory: URL, _ arguments: String...,
      environment: [String: String] = [:], launcher: [String] = []
    ) async throws -> Answer {
      let command = ["doctor", "--json", "--directory", directory.path] + arguments
      let result = try await KithProcess(
        command, in: household.root, environment: environment, launcher: launcher
      ).wait()
      let answer = try JSONDecoder().decode(Answer.self, from: Data(result.output.utf8))
      let status = answer.healthy ? CommandStatus.success : .unhealthy
      #expect(result.status == status.rawValue, "\(result)")
      return answer
    }

    /// A listener on a port of the system's choice, in this process.
    private final class Listener {
      let port: Int
      private let descriptor: Int32

      init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isBound = withUnsafeMutablePointer(to: &address) { address in
          address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(descriptor, address, size) == 0 && listen(descriptor, 1) == 0
              && getsockname(descriptor, address, &size) == 0
          }
        }
        guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = Int(UInt16(bigEndian: address.sin_port))
      }

      deinit { close(descriptor) }
    }

    @Test
    func `a healthy host is called so, a node that is missing or cut off not, and nothing is left`()
      async throws
    {
      let household = try Household()
      let (one, two) = (try await household.create("one"), try await household.join("two"))
      let before = try FileManager.default.contentsOfDirectory(atPath: one.directory.path).sorted()
      let idle = try await ask(household, one.directory, "--port", "0")
      let dead = idle.problems(of: "roster")
      #expect(dead.count == 1 && dead[0].advice?.contains("kith run") == true, "\(idle.findings)")
      #expect(
        idle.findings.allSatisfy {
          $0.verdict != "problem" || ["network", "roster"].contains($0.check)
        }, "\(idle.findings)")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: one.directory.path).sorted() == before)
      for member in household.members { try await household.start(member) }
      try await household.awaitMeeting()
      let running = try await ask(household, one.directory)
      #expect(running.healthy, "\(running.findings)")
      #expect(running.findings.contains { $0.check == "port" && $0.seen.contains(one.address) })
      #expect(running.findings.contains { $0.check == "roster" && $0.seen.hasPrefix("1 of 1") })
      func check(_ arguments: String...) async throws -> KithProcess.Result {
        try await KithProcess.run(
          ["status", "--check", "--directory", one.directory.path] + arguments, in: household.root)
      }
      let well = try await check("--behind", "1h")
      #expect(well.status == 0 && well.output == "ok: 1 of 1 connected\n", "\(well)")
      #expect(try await check("--peers", "2").status == CommandStatus.unhealthy.rawValue)
      try await household.stop(two)
      try await eventually("it to be cut off") {
        let alone = try await check()
        return alone.status == CommandStatus.unhealthy.rawValue
          && alone.output == "problem: 0 of 1 connected\n"
      }
      // The other device was just switched off, which nobody has to mend.
      #expect(try await ask(household, one.directory).problems(of: "roster").isEmpty)
      // A monitor does not wait for a node that hangs.
      one.process?.send(SIGSTOP)
      let clock = ContinuousClock.now
      let hung = try await check()
      #expect(hung.status == CommandStatus.unhealthy.rawValue, "\(hung)")
      #expect(!hung.output.contains("kith run"), "\(hung)")
      // Five seconds, on a busy computer.
      #expect(ContinuousClock.now - clock < .seconds(9))
      one.process?.send(SIGCONT)
      try await household.stop(one)
      let stopped = try await check()
      #expect(
        stopped.status == CommandStatus.unhealthy.rawValue
          && stopped.output.contains("no node runs here"), "\(stopped)")
    }

    @Test func `a taken port is told with who has it`() async throws {
      let household = try Household()
      let member = try await household.create("one")
      let listener = try Listener()
      let answer = try await ask(household, member.directory, "--port", "\(listener.port)")
      let problems = answer.problems(of: "port")
      #expect(problems.count == 1 && !answer.healthy)
      #expect(problems.first?.seen.contains("process \(getpid()) (") == true, "\(problems)")
    }

    @Test(.enabled(if: Clocks.isPossible, "libfaketime of Debian's faketime is missing"))
    func `a wrong clock is told by its node and by the others'`() async throws {
      let household = try Household()
      let (right, wrong) = (try await household.create("right"), try await household.join("wrong"))
      let offset = household.root.appending(path: "offset")
      try Clocks.set("+5y", in: offset)
      wrong.environment = try Clocks.environment(offsetFile: offset)
      wrong.launcher = Clocks.launcher
      for member in household.members { try await household.start(member) }
      for (member, word) in [(right, "ahead"), (wrong, "behind")] {
        try await eventually("\(member.name) to tell it", seconds: 40) {
          let answer = try await ask(
            household, member.directory, environment: member.environment,
            launcher: member.launcher)
          return answer.problems(of: "clock").contains { $0.advice?.contains(word) == true }
        }
      }
      // Ten years behind, alone: its own files are from the future.
      try await household.stop(wrong)
      try Clocks.set("-10y", in: offset)
      let alone = try await ask(
        household, wrong.directory, "--port", "0", environment: wrong.environment,
        launcher: wrong.launcher)
      #expect(alone.problems(of: "clock").first?.seen.contains("in the future") == true)
    }

    @Test func `a full disk is told, and a file system in memory`() async throws {
      let household = try Household()
      let directory = household.root.appending(path: "disk")
      household.mounts.append(try Mount.temporary(directory, bytes: 6 << 20))
      let member = try await household.create("full", in: directory.appending(path: "device"))
      let filler = open(directory.path + "/filler", O_WRONLY | O_CREAT, 0o600)
      for size in [65_536, 4_096, 1] {
        let bytes = [UInt8](repeating: 1, count: size)
        while write(filler, bytes, size) > 0 {}
      }
      close(filler)
      let answer = try await ask(household, member.directory, "--port", "0")
      let problems = answer.problems(of: "disk")
      #expect(problems.contains { $0.seen.contains("No space left") }, "\(problems)")
      #expect(answer.findings.contains { $0.seen == "tmpfs" && $0.verdict == "note" })
    }

    @Test func `a damaged directory, loose modes and a missing passphrase are told`() async throws {
      let household = try Household()
      let member = try await household.create("one")
      let file = household.root.appending(path: "passphrase")
      try Data("horse".utf8).write(to: file)
      chmod(file.path, 0o600)
      let locked = try await household.run(
        member, "account", "lock", "--passphrase-file", file.path)
      #expect(locked.status == 0)
      let without = try await ask(household, member.directory, "--port", "0")
      #expect(without.problems(of: "directory").map(\.seen) == ["none runs"])
      let wrong = household.root.appending(path: "wrong")
      try Data("cow".utf8).write(to: wrong)
      chmod(wrong.path, 0o600)
      let refused = try await ask(
        household, member.directory, "--port", "0", "--passphrase-file", wrong.path)
      #expect(refused.problems(of: "directory").first?.advice?.contains("wrong") == true)
      #expect(without.findings.contains { $0.check == "directory" && $0.verdict == "unknown" })
      chmod(member.directory.path, 0o750)
      let loose = try await ask(
        household, member.directory, "--port", "0", "--passphrase-file", file.path)
      #expect(loose.problems(of: "directory").first?.advice?.contains("chmod 700") == true)
      chmod(member.directory.path, 0o700)
      let database = member.directory.appending(path: "kith.sqlite").path
      let descriptor = open(database, O_WRONLY)
      // All of it: a part would be mended.
      pwrite(descriptor, [UInt8](repeating: 0xFF, count: 1 << 18), 1 << 18, 0)
      close(descriptor)
      let damaged = try await ask(
        household, member.directory, "--port", "0", "--passphrase-file", file.path)
      #expect(damaged.problems(of: "directory").first?.advice?.contains("damaged") == true)
      try Data("{".utf8).write(to: member.directory.appending(path: "accounts.json"))
      chmod(member.directory.path + "/accounts.json", 0o600)
      let unlisted = try await ask(household, member.directory, "--port", "0")
      #expect(
        unlisted.problems(of: "directory").contains {
          $0.advice?.contains("accounts.json") == true
        })
    }

    @Test func `a monitor hears why no node can start`() async throws {
      let household = try Household()
      let (one, _) = (try await household.create("one"), try await household.join("two"))
      func check() async throws -> KithProcess.Result {
        try await KithProcess.run(
          ["status", "--check", "--json", "--directory", one.directory.path], in: household.root)
      }
      let stopped = try await check()
      #expect(stopped.status == CommandStatus.unhealthy.rawValue)
      #expect(stopped.output.contains("\"others\": 1"), "\(stopped)")
      let secrets = one.directory.appending(path: "secrets")
      try FileManager.default.moveItem(at: secrets, to: household.root.appending(path: "saved"))
      try Data().write(to: secrets)
      chmod(secrets.path, 0o600)
      let empty = try await check()
      #expect(empty.status == CommandStatus.unhealthy.rawValue)
      #expect(empty.output.contains("none can start"), "\(empty)")
      #expect(!empty.output.contains("others") && !empty.output.contains("kith run"), "\(empty)")
    }
  }
}
