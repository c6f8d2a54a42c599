import Foundation
import KithSimulator
import Testing

/// Promise 10 across processes, whose dictionaries and sets have other orders each time; and what
/// the tool prints.
@Suite struct ProcessTests {
  private static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = Bundle.module.bundleURL.deletingLastPathComponent()
      .appending(path: "kith-sim")
    process.arguments = arguments
    process.environment = ["PATH": "/usr/bin:/bin"]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }

  @Test(arguments: [77, 1_000_003, 424_242] as [UInt64])
  func `the same seed gives the same run, in another process too`(seed: UInt64) throws {
    let here = Simulation.run(ScheduleMaker.schedule(seed: seed, within: .init(devices: 2...5)))
    for _ in 0..<2 {
      let there = try Self.run(["replay", "\(seed)", "--devices", "5"])
      #expect(there.status == 0)
      #expect(there.output.contains(here.trace), "seed \(seed)")
    }
  }

  @Test func `a campaign ends well and says what happened`() throws {
    let run = try Self.run(["run", "--seeds", "4", "--first", "9", "--devices", "3", "--json"])
    #expect(run.status == 0)
    struct Report: Decodable {
      var seeds: Int
      var failures: [String]
      var happenings: [String: Int]
    }
    let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
    #expect(report.seeds == 4)
    #expect(report.failures.isEmpty)
    #expect(report.happenings["writes", default: 0] > 0)
  }

  @Test func `arguments that cannot be understood are refused`() throws {
    #expect(try Self.run(["replay", "no-such-file"]).status == 1)
    #expect(try Self.run(["run", "--faults", "rain"]).status == 64)
    for devices in ["1", "65", "9-3", "1-9", "9-", "-9", "3-5-9", "many"] {
      #expect(try Self.run(["run", "--devices", devices]).status == 64, "--devices \(devices)")
    }
    #expect(try Self.run(["shrink", "1", "--devices", "2", "--faults", "cut"]).status == 2)
  }
}
