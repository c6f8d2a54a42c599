import Foundation
import Testing

@testable import KithCommands

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
