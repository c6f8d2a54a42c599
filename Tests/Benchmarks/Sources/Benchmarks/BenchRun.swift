import Foundation

@testable import Kith
@testable import KithCore
@testable import KithTerminal
@testable import KithTestSupport

struct BenchRun {
  let isQuick: Bool
  /// Called at the start of each part.
  let progress: (String) -> Void

  private var rounds: Int { isQuick ? 40 : 500 }
  private var crowdedRounds: Int { isQuick ? 40 : 400 }
  private var newDevices: Int { isQuick ? 1 : 5 }

  func report() async throws -> BenchReport {
    let root = FileManager.default.temporaryDirectory
      .appending(path: "kith-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: root) }
    var report = BenchReport(isQuick: isQuick)
    try await written(root.appending(path: "sync"), &report)
    try await attached(root.appending(path: "shared"), &report)
    try await caughtUp(root, &report)
    try admitted(&report)
    try await remembered(root, &report)
    try await started(root.appending(path: "stores"), &report)
    return report
  }

  private func written(_ root: URL, _ report: inout BenchReport) async throws {
    let yardsticks = try Yardsticks(directory: root)
    let figures = try await BenchNodes.with(root) { nodes in
      var report = BenchReport(isQuick: isQuick)
      progress("set on one node to notified on another")
      let receiver = try await nodes.join("receiver")
      _ = try receiver.store(BenchNodes.store)
      _ = try nodes.sender.store(BenchNodes.store)
      var bench = SyncBench(
        nodes: nodes, yardsticks: yardsticks, rounds: rounds, warmUpOfLogs: isQuick ? 0 : 1_000)
      let (notified, sets, commits) = try await nodes.running(receiver) {
        try await BenchNodes.wait("two nodes to connect") { !receiver.status.peers.isEmpty }
        let notified = try await bench.setToNotified(receiver)
        progress("durable sets, one after another")
        let (sets, commits) = try await bench.sequentialSets("with-a-peer")
        return (notified, sets, commits)
      }
      synced(notified, yardsticks, &report)
      let alone = try await bench.sequentialSets("alone")
      report.add("sequentialSets", "durable sets, one after another", alone.sets.rate, .perSecond)
      report.add(
        "sequentialSetsRatio", "  of bare commits", alone.commits.median / alone.sets.median,
        .ratio, .atLeast(0.8))
      report.add(
        "publishedSetsRatio", "  with a peer, published", commits.median / sets.median, .ratio)
      progress("durable sets, 64 tasks at once")
      bench.rounds = crowdedRounds
      report.add(
        "crowdedSets", "durable sets, 64 tasks", try await bench.crowdedSets(), .perSecond,
        .atLeast(20_000))
      return report.figures
    }
    report.figures += figures
    yardsticks.close()
  }

  private func synced(
    _ notified: Samples, _ yardsticks: Yardsticks, _ report: inout BenchReport
  ) {
    report.add("commit", "bare durable commit", yardsticks.commits.median, .seconds)
    report.add("sign", "sign (Ed25519)", yardsticks.signs.median, .seconds)
    report.add("verify", "verify (Ed25519)", yardsticks.verifies.median, .seconds)
    report.add("roundTrip", "round trip (TCP, loopback)", yardsticks.roundTrips.median, .seconds)
    let parts = yardsticks.partsOfSync
    report.add(
      "setToNotified", "set to notified, median", notified.median, .seconds, .atMost(1.35 * parts))
    report.add("setToNotifiedP99", "set to notified, p99", notified.p99, .seconds)
    report.add(
      "setToNotifiedRatio", "  of its parts' sum", notified.median / parts, .ratio, .atMost(1.35))
  }

  private func attached(_ directory: URL, _ report: inout BenchReport) async throws {
    progress("set by the owner of a directory and by another program")
    let (owner, attached, batchRate) = try await AttachedBench.sets(
      directory, rounds: isQuick ? 400 : 5_000)
    report.add("set", "set, accepted", owner.median, .seconds)
    report.add("attachedSet", "  by an attached program", attached.median, .seconds)
    report.add("attachedSetP99", "  by an attached program, p99", attached.p99, .seconds)
    report.add(
      "batchSets", "durable sets, kith batch with a node", batchRate, .perSecond, .atLeast(5_000))
  }

  /// Each form has its own account: a node replicates every store of its account.
  private func caughtUp(_ root: URL, _ report: inout BenchReport) async throws {
    progress("a new device catches up, each key its own change set")
    let many = try await BenchNodes.with(root.appending(path: "many")) { nodes in
      try await CatchUpBench(nodes: nodes, inOne: false).run(devices: newDevices)
    }
    report.add(
      "catchUpMany", "catch-up, 1,024 change sets", many.median, .seconds, .atMost(0.060))
    progress("a new device catches up, all in one change set")
    let (one, read) = try await BenchNodes.with(root.appending(path: "one")) { nodes in
      let samples = try await CatchUpBench(nodes: nodes, inOne: true).run(devices: newDevices)
      progress("reads")
      return (samples, try ReadBench.read(try nodes.sender.store(BenchNodes.store)))
    }
    report.add("catchUpOne", "catch-up, one change set", one.median, .seconds, .atMost(0.010))
    report.add("read", "read of a present key", read, .seconds, .atMost(200e-9))
  }

  private func remembered(_ root: URL, _ report: inout BenchReport) async throws {
    progress("memory of a node with a full store")
    let memory = try await MemoryBench.memory(
      directory: root.appending(path: "one").appending(path: CatchUpBench.firstDevice),
      store: BenchNodes.store)
    report.add(
      "memory", "private memory of a node, full store", Double(memory.anonymous), .bytes,
      .atMost(8 * 1_048_576))
    report.add("memoryResident", "  with mapped files (code)", Double(memory.resident), .bytes)
  }

  private func started(_ directory: URL, _ report: inout BenchReport) async throws {
    let stores = isQuick ? 16 : 256
    progress("start with \(stores) stores of 1 MiB")
    let seconds = try await CurvesRun.started(stores: stores, by: .oneChangeSet, in: directory)
    report.add(
      "start", "start with \(stores) stores of 1 MiB, first read", seconds, .seconds, .atMost(1),
      isRequired: false)
  }

  private func admitted(_ report: inout BenchReport) throws {
    progress("admission of a full, over-quota store")
    let (times, steps) = try ReadBench.admission(of: AdmissionLoad())
    report.add(
      "admission", "admission, \(Format.count(steps)) steps", times.median, .seconds, .atMost(0.005)
    )
  }
}
