import ArgumentParser
import Foundation
import Synchronization

@testable import Kith
@testable import KithCommands
@testable import KithCore
@testable import KithCrypto
@testable import KithStorage
@testable import KithTerminal

struct HopsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hops",
    abstract: "Print when a durable set reaches each step on its way to another node.",
    discussion: "Medians and 99th percentiles since the call, of one store on loopback.")

  @Flag(help: "Print JSON.")
  var json = false

  @Option(help: ArgumentHelp("The number of sets.", valueName: "number"))
  var rounds = 500

  func run() async throws {
    let root = FileManager.default.temporaryDirectory
      .appending(path: "kith-hops-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: root) }
    let probe = HopProbe()
    try await BenchNodes.with(root, opener: { try await probe.open($0) }) { nodes in
      let receiver = try await nodes.join("receiver")
      probe.watch(nodes.sender, receiver)
      try await nodes.connected([receiver]) {
        probe.watchSending(of: nodes.sender)
        let bench = SyncBench(
          nodes: nodes, yardsticks: try Yardsticks(directory: root.appending(path: "bare")),
          rounds: rounds, warmUpOfLogs: 0)
        _ = try await bench.setToNotified(
          receiver, began: { probe.begin() }, ended: { probe.end(notifiedAt: $0) })
      }
    }
    let console = Console(isQuiet: false, tool: "kith-bench")
    let hops = probe.hops
    try console.data(
      json
        ? Document.versioned([
          "hops": .of(hops.map { Figure(name: $0.rawValue, median: $1.median, p99: $1.p99) })
        ]).text()
        : hops.map { hop, samples in
          String(
            format: "%@ %7.0f µs %7.0f µs\n",
            hop.rawValue.padding(toLength: 54, withPad: " ", startingAt: 0),
            samples.median * 1e6, samples.p99 * 1e6)
        }.joined())
  }
}

private struct Figure: Encodable {
  let name: String
  /// In seconds, like ``p99``.
  let median: Double
  let p99: Double
}

/// Notes the first time since the call at which a set reaches each step.
final class HopProbe: Sendable {
  enum Hop: String, CaseIterable {
    case accepted = "sender: accepted, sealed and signed; the commit begins"
    case written = "sender: written to the log"
    case sent = "sender: handed to the network"
    case synced = "sender: synced to the disk"
    case applied = "receiver: checked, opened, applied; the commit begins"
    case notified = "receiver: the program is notified"
    case kept = "receiver: synced to the disk"
  }

  private struct State {
    var start: ContinuousClock.Instant?
    var reached: [Hop: Duration] = [:]
    var samples: [Hop: Samples] = [:]
    var sender: ObjectIdentifier?
  }

  private let state = Mutex(State())

  func open(_ configuration: Node.Configuration) async throws -> Node {
    try await BlockingThread.run {
      Result {
        let opened = try DeviceStorage.open(configuration.directory, nil, isForReading: false)
        let storage = ProbedStorage(opened.storage, self)
        var entropy = SystemRandom()
        let engine = try Engine(
          account: try DeviceStorage.account(of: opened), keys: opened.keys,
          process: ProcessID(entropy.draw()), storage: storage, logger: configuration.logger,
          boot: SystemClock.boot)
        return Node(
          configuration: configuration, engine: engine, opened: opened,
          staticPeers: try Node.peerAddresses(configuration.peers))
      }
    }.get()
  }

  func watch(_ sender: Node, _ receiver: Node) {
    let storage = sender.engine.storage
    state.withLock { $0.sender = ObjectIdentifier(storage) }
  }

  /// Called while the node runs.
  func watchSending(of node: Node) {
    node.engine.state.withLock { state in
      state.transports.node = state.transports.node.map { ProbedLink($0, self) }
    }
  }

  func begin() {
    state.withLock { ($0.start, $0.reached) = (.now, [:]) }
  }

  func note(_ hop: Hop, at moment: ContinuousClock.Instant = .now) {
    state.withLock { state in
      guard let start = state.start, state.reached[hop] == nil else { return }
      state.reached[hop] = moment - start
    }
  }

  /// Of a round that reached all steps.
  func end(notifiedAt moment: ContinuousClock.Instant) {
    note(.notified, at: moment)
    let end = ContinuousClock.now + .milliseconds(100)
    while state.withLock({ $0.reached.count }) < Hop.allCases.count, .now < end { usleep(50) }
    state.withLock { state in
      state.start = nil
      guard state.reached.count == Hop.allCases.count else { return }
      for (hop, time) in state.reached { state.samples[hop, default: Samples()].add(time) }
    }
  }

  var hops: [(Hop, Samples)] {
    let samples = state.withLock { $0.samples }
    return samples.sorted { $0.value.median < $1.value.median }.map { ($0.key, $0.value) }
  }

  func note(_ storage: AnyObject, _ sending: Hop, _ receiving: Hop) {
    let isSender = state.withLock { $0.sender == ObjectIdentifier(storage) }
    note(isSender ? sending : receiving)
  }
}

private final class ProbedStorage: ReplicaStorage {
  private let storage: any ReplicaStorage
  private let probe: HopProbe

  init(_ storage: any ReplicaStorage, _ probe: HopProbe) {
    (self.storage, self.probe) = (storage, probe)
  }

  var isCopy: Bool { storage.isCopy }

  func outline() throws(StorageError) -> StorageOutline { try storage.outline() }

  func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] { try storage.rows(keys) }

  func commit(_ mutations: [Mutation], written: @Sendable () -> Void) throws(StorageError) {
    probe.note(self, .accepted, .applied)
    try storage.commit(mutations) {
      self.probe.note(self, .written, .applied)
      written()
    }
    probe.note(self, .synced, .kept)
  }
}

private final class ProbedLink: SessionTransport {
  private let link: any SessionTransport
  private let probe: HopProbe

  init(_ link: any SessionTransport, _ probe: HopProbe) { (self.link, self.probe) = (link, probe) }

  func send(_ messages: [[UInt8]], to session: SessionID) {
    link.send(messages, to: session)
    probe.note(.sent)
  }

  func awaitDrain(_ session: SessionID) { link.awaitDrain(session) }
  func close(_ session: SessionID, _ reason: CloseReason) { link.close(session, reason) }
  func closeAll() { link.closeAll() }
  func pauseReading(_ session: SessionID, _ isPaused: Bool) {
    link.pauseReading(session, isPaused)
  }
  func setAddresses(_ addresses: [DeviceID: [String]]) { link.setAddresses(addresses) }
  func setLeftBehind(_ devices: [DeviceID]) { link.setLeftBehind(devices) }
  func promote(_ session: SessionID) { link.promote(session) }
}
