import Foundation
import Kith
import KithCore

/// All measurements of `kith bench`, one after another, in a directory that is removed afterwards.
struct BenchRun {
  let isQuick: Bool
  /// Is told what begins.
  let progress: (String) -> Void

  private var rounds: Int { isQuick ? 40 : 300 }
  private var crowdedRounds: Int { isQuick ? 40 : 400 }

  /// Measures everything.
  func report() async throws -> BenchReport {
    let root = FileManager.default.temporaryDirectory
      .appending(path: "kith-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: root) }
    let yardsticks = try Yardsticks(directory: root)
    var report = BenchReport(isQuick: isQuick)
    let measured = try await BenchNodes.with(root) { nodes in
      var report = BenchReport(isQuick: isQuick)
      try await synced(nodes, yardsticks, &report)
      try await written(nodes, yardsticks, &report)
      try await caughtUp(nodes, &report)
      return report
    }
    report.figures += measured.figures
    try yardsticks.close()
    try admitted(&report)
    progress("memory of a node with a full store")
    let bytes = try await MemoryBench.bytes(
      directory: root.appending(path: "newcomer-1"), store: "bench.one")
    report.add(
      "memory", "memory of a node, full store", Double(bytes), .bytes, .atMost(32 * 1_048_576))
    return report
  }

  private func synced(
    _ nodes: BenchNodes, _ yardsticks: Yardsticks, _ report: inout BenchReport
  ) async throws {
    progress("set on one node to notified on another")
    let receiver = try await nodes.join("receiver")
    _ = try receiver.store(BenchNodes.store)
    _ = try nodes.sender.store(BenchNodes.store)
    let bench = SyncBench(nodes: nodes, yardsticks: yardsticks, rounds: rounds)
    let synced = try await nodes.running(receiver) {
      try await receiver.waitForFirstSync(timeout: .seconds(30))
      return try await bench.setToNotified(receiver)
    }
    report.add("commit", "bare durable commit", yardsticks.commits.median, .seconds)
    report.add("sign", "sign (Ed25519)", yardsticks.signs.median, .seconds)
    report.add("verify", "verify (Ed25519)", yardsticks.verifies.median, .seconds)
    report.add("roundTrip", "round trip (TCP, loopback)", yardsticks.roundTrips.median, .seconds)
    let budget = yardsticks.syncBudget
    report.add(
      "setToNotified", "set to notified, median", synced.median, .seconds, .atMost(budget))
    report.add("setToNotifiedP99", "set to notified, p99", synced.p99, .seconds)
    report.add(
      "setToNotifiedRatio", "  of its parts' sum", synced.median / (budget / 1.5), .ratio,
      .atMost(1.5))
  }

  private func written(
    _ nodes: BenchNodes, _ yardsticks: Yardsticks, _ report: inout BenchReport
  ) async throws {
    progress("durable sets, one after another")
    let bench = SyncBench(nodes: nodes, yardsticks: yardsticks, rounds: rounds)
    let (sets, commits) = try await bench.sequentialSets()
    let rate = Double(sets.count) / sets.total
    report.add("sequentialSets", "durable sets, one after another", rate, .perSecond)
    report.add(
      "sequentialSetsRatio", "  of bare commits", rate / (Double(commits.count) / commits.total),
      .ratio, .atLeast(0.8))
    progress("durable sets, 64 tasks at once")
    let crowded = SyncBench(nodes: nodes, yardsticks: yardsticks, rounds: crowdedRounds)
    report.add(
      "crowdedSets", "durable sets, 64 tasks", try await crowded.crowdedSets(), .perSecond,
      .atLeast(20_000))
  }

  private func caughtUp(_ nodes: BenchNodes, _ report: inout BenchReport) async throws {
    let bench = CatchUpBench(nodes: nodes)
    progress("a new device catches up, each key its own change set")
    try await bench.fill("bench.many", inOne: false)
    let many = try await bench.catchUp("bench.many", devices: isQuick ? 1 : 3, name: "many")
    report.add(
      "catchUpMany", "catch-up, 1,024 change sets", many.median, .seconds, .atMost(0.060))
    progress("a new device catches up, all in one change set")
    try await bench.fill("bench.one", inOne: true)
    let one = try await bench.catchUp("bench.one", devices: isQuick ? 1 : 3, name: "newcomer")
    report.add("catchUpOne", "catch-up, one change set", one.median, .seconds, .atMost(0.010))
    progress("reads")
    let store = try nodes.sender.store("bench.one")
    report.add(
      "read", "read of a present key", try ReadBench.read(store), .seconds, .atMost(200e-9))
  }

  private func admitted(_ report: inout BenchReport) throws {
    progress("admission of a full, over-quota store")
    let (times, steps) = try ReadBench.admission()
    report.add(
      "admission", "admission, \(Humane.count(steps)) steps", times.median, .seconds, .atMost(0.005)
    )
  }
}
