import Foundation
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import Kith
@testable import KithStorage

/// One bit of a stopped device's database flips. Opening it then ends in one of three ways: it is
/// refused by name, it shows the same, or it shows something else and says that something is missing.
/// Beside a device that has it, what is missing comes back.
@Suite(.timeLimit(.minutes(10)))
struct FlippedBitTests {
  /// A device with something of every kind, closed; and another that has the same, closed too.
  private struct Pair {
    let nodes: Nodes
    let victim: String
    let healthy: String
    let good: [String: [Key: PropertyListValue]]

    static let stores = ["com.example.one", "com.example.two"]

    init() async throws {
      let nodes = try await Nodes()
      self.nodes = nodes
      let first = nodes.first
      let second = try await running(first) { try await nodes.join("second", by: first) }
      try await running(first, second) {
        for name in Pair.stores {
          let mine = try first.store(name)
          let theirs = try second.store(name)
          try await second.meetsPeer()
          // One change set of many entries, some of one, a removal, and superseded entries.
          try await mine.commit { change in
            for number in 0..<12 {
              change.set(.string("value \(number)"), forKey: "group\(number)")
            }
          }
          let large = PropertyListValue.string(String(repeating: "large ", count: 1_500))
          try await theirs.commit { $0.set(large, forKey: "large") }
          for number in 0..<4 {
            try await mine.commit { $0.set(.integer(Int64(number)), forKey: "mine\(number)") }
            try await theirs.commit { $0.set(.integer(Int64(number)), forKey: "theirs\(number)") }
          }
          try await mine.commit { $0.removeValue(forKey: "mine0") }
          try await theirs.commit { $0.set("new", forKey: "group3") }
          try await eventually {
            first.status.stores.map(\.digest) == second.status.stores.map(\.digest)
              && mine.dictionary == theirs.dictionary && mine.dictionary.count == 20
          }
        }
      }
      var good: [String: [Key: PropertyListValue]] = [:]
      for name in Pair.stores { good[name] = try await second.values(in: name) }
      self.good = good
      victim = second.configuration.directory
      healthy = first.configuration.directory
      try first.close()
      try second.close()
    }

    var database: String { victim + "/kith.sqlite" }

    /// The files that are put back before each flip.
    var files: [String] { [database, victim + "/lock"] }

    var saved: [Data] {
      get throws { try files.map { try Data(contentsOf: URL(fileURLWithPath: $0)) } }
    }
  }

  private enum Outcome: String {
    case refused
    case same
    case said
    case silent
  }

  private func text(_ counts: [Outcome: Int]) -> String {
    counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue) \($0.value)" }
      .joined(separator: ", ")
  }

  /// Opens the victim and looks at it as a person would.
  private func look(_ pair: Pair) async throws -> Outcome {
    let node: Node
    do {
      node = try await Nodes.open(pair.victim)
    } catch is KithError {
      return .refused
    }
    defer { try? node.close() }
    var isSame = true
    for name in Pair.stores {
      let values = try await node.values(in: name)
      isSame = isSame && values == pair.good[name]
    }
    if isSame { return .same }
    let isSaid =
      node.status.stores.contains { $0.missing != nil }
      && node.status.problems.contains { $0.code == .damaged }
    return isSaid ? .said : .silent
  }

  /// Flips a bit of the file, in place, so that the directory is no copy.
  private func flip(_ path: String, at offset: Int, bit: Int) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? file.close() }
    try file.seek(toOffset: UInt64(offset))
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: [byte ^ (1 << UInt8(bit))])
  }

  /// Puts the files back, and removes the log and the databases that were made anew.
  private func restoreAll(_ pair: Pair, _ saved: [Data]) throws {
    for (path, bytes) in zip(pair.files, saved) { try restore(path, bytes) }
    for name in try FileManager.default.contentsOfDirectory(atPath: pair.victim)
    where name.hasPrefix("kith.sqlite") && name != "kith.sqlite" {
      try FileManager.default.removeItem(atPath: pair.victim + "/" + name)
    }
  }

  /// Puts a file's bytes back, in place.
  private func restore(_ path: String, _ bytes: Data) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? file.close() }
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: bytes)
  }

  @Test func `no region of the database gives other data without a word`() async throws {
    try await withTaskExecutorPreference(OwnThread()) { try await checkRegions() }
  }

  private func checkRegions() async throws {
    let pair = try await Pair()
    let saved = try pair.saved
    let seed = testSeed("flipped bits")
    var random = SeededEntropy(seed: seed)
    var counts: [Outcome: Int] = [:]
    for start in stride(from: 0, to: saved[0].count, by: 512) {
      try restoreAll(pair, saved)
      let offset = start + Int.random(in: 0..<min(512, saved[0].count - start), using: &random)
      let bit = Int.random(in: 0..<8, using: &random)
      try flip(pair.database, at: offset, bit: bit)
      let outcome = try await look(pair)
      counts[outcome, default: 0] += 1
      #expect(outcome != .silent, "seed \(seed), bit \(bit) of byte \(offset)")
    }
    print("flipped bits, one for each 512 bytes: \(text(counts))")
    #expect(counts[.same] ?? 0 > 0)
  }

  @Test func `a damaged structure is mended beside a device that has everything`() async throws {
    try await withTaskExecutorPreference(OwnThread()) { try await checkStructure() }
  }

  private func checkStructure() async throws {
    let pair = try await Pair()
    let saved = try pair.saved
    let seed = testSeed("damaged structure")
    var random = SeededEntropy(seed: seed)
    var counts: [Outcome: Int] = [:]
    var healed = 0
    for round in 0..<60 {
      try restoreAll(pair, saved)
      let page = Int.random(in: 0..<saved[0].count / 4_096, using: &random)
      let offset =
        page == 0
        ? Int.random(in: 0..<140, using: &random)
        : page * 4_096
          + [0, Int.random(in: 1..<12, using: &random), Int.random(in: 8..<40, using: &random)][
            round % 3]
      let bit = Int.random(in: 0..<8, using: &random)
      try flip(pair.database, at: offset, bit: bit)
      let place: Comment = "seed \(seed), bit \(bit) of byte \(offset)"
      let outcome = try await look(pair)
      counts[outcome, default: 0] += 1
      #expect(outcome != .silent, place)
      guard outcome == .said, healed < 8 else { continue }
      healed += 1
      try await checkReturn(pair, place)
    }
    print("flipped bits of the structure: \(text(counts))")
    #expect(healed > 3 && counts[.refused] ?? 0 < 10)
  }

  @Test func `a structure that is damaged while the node runs is mended without a person`()
    async throws
  {
    try await withTaskExecutorPreference(OwnThread()) { try await checkRunning() }
  }

  private func checkRunning() async throws {
    let pair = try await Pair()
    let saved = try pair.saved
    // From the last page on, until the damage of one makes a new database.
    var page = saved[0].count / 4_096
    repeat {
      page -= 1
      try restoreAll(pair, saved)
      try flip(pair.database, at: page * 4_096, bit: 7)
      _ = try await look(pair)
    } while page > 1 && DeviceDirectory.damagedDatabases(pair.victim).isEmpty
    try restoreAll(pair, saved)
    let offset = page * 4_096
    let accounts = try await onThread { try AccountsTests.open(pair.victim) }
    try await AccountsTests.serving(accounts) {
      let store = try await onThread { try accounts.store(Pair.stores[0]) }
      let node = try #require(accounts.node)
      try await eventually { node.status.isRunning }
      try self.flip(pair.database, at: offset, bit: 7)
      // SQLite has much of it in memory: the engine's tests have the way from here to there.
      node.engine.damage.raise()
      try await eventually { accounts.node.map { $0 !== node && $0.status.isRunning } ?? false }
      #expect(DeviceDirectory.damagedDatabases(pair.victim).count == 1)
      try await store.commit { $0.set("after", forKey: "after") }
      #expect(store.value(forKey: "after") == "after")
    }
    try await onThread { try accounts.close() }
  }

  /// Beside a device that has everything, the data comes back, and both have the same.
  private func checkReturn(_ pair: Pair, _ place: Comment) async throws {
    let healthy = try await Nodes.open(pair.healthy)
    try await running(healthy) {
      let victim = try await Nodes.open(pair.victim, peers: healthy.listeningAddresses)
      try await running(victim) {
        try await eventually {
          !victim.status.stores.contains { $0.missing != nil }
            && victim.status.stores.map(\.digest) == healthy.status.stores.map(\.digest)
        }
        #expect(healthy.status.counters.rejected == 0, place)
        #expect(victim.status.counters.rejected == 0, place)
      }
      try victim.close()
    }
    try healthy.close()
    #expect(try await look(pair) == .same, place)
  }

  /// The sealed rows in the file, by kind.
  private func rows(of pair: Pair) throws -> [(name: String, sealed: [UInt8])] {
    let secrets = try SecretsFile(path: pair.victim + "/secrets").read(passphrase: nil)
    let seal = RowSeal(key: secrets.storage.copy())
    let pages = try DatabasePages(DatabaseImage(pair.database), roots: [:])
    return pages.rows.compactMap { row in
      guard let sealed = row.sealed, let key = seal.open(sealed)?.key else { return nil }
      let name: String? =
        switch key {
        case .record: "record"
        case .store(_, .policy): "store"
        case .store(_, .vector): "vector"
        case .store(_, .changeSet): "change set"
        case .store(_, .entry): "entry"
        default: nil
        }
      return name.map { ($0, sealed) }
    }
  }

  @Test func `no row gives other data without a word, and what is missing comes back`()
    async throws
  {
    try await withTaskExecutorPreference(OwnThread()) { try await checkRows() }
  }

  private func checkRows() async throws {
    let pair = try await Pair()
    let rows = try rows(of: pair)
    let saved = try pair.saved
    var counts: [String: [Outcome: Int]] = [:]
    var healed: Set<String> = []
    for (name, sealed) in rows {
      let piece = Data(sealed.prefix(64).suffix(48))
      let place = try #require(saved[0].range(of: piece), "\(name)")
      try restoreAll(pair, saved)
      try flip(pair.database, at: place.lowerBound + piece.count / 2, bit: 0)
      let outcome = try await look(pair)
      counts[name, default: [:]][outcome, default: 0] += 1
      #expect(outcome != .silent, "\(name) at \(place.lowerBound)")
      if outcome == .said, healed.insert(name).inserted { try await checkHealing(pair, name) }
    }
    for (name, counts) in counts.sorted(by: { $0.key < $1.key }) {
      print("flipped bits in a \(name): \(text(counts))")
    }
    #expect(counts["record"]?[.refused] == nil && counts["store"]?[.refused] == nil)
    #expect(healed.isSuperset(of: ["change set", "entry"]))
    for (name, outcomes) in counts { #expect(outcomes[.refused] == nil, "\(name)") }
  }

  /// Beside a device that has everything the data comes back, and nobody is blamed.
  private func checkHealing(_ pair: Pair, _ name: String) async throws {
    let healthy = try await Nodes.open(pair.healthy)
    try await running(healthy) {
      let victim = try await Nodes.open(pair.victim, peers: healthy.listeningAddresses)
      // One row, of any store: counted when it was found, and known since. Without their header a
      // change set's entries are missing too.
      let missing = victim.status.stores.compactMap(\.missing?.rows)
      #expect(missing.count == victim.status.stores.count, "\(name)")
      #expect(missing.allSatisfy { (1...2).contains($0) }, "\(name)")
      try await running(victim) {
        try await eventually { !victim.status.stores.contains { $0.missing != nil } }
        for store in Pair.stores {
          let values = try await victim.values(in: store)
          #expect(values == pair.good[store], "\(name)")
        }
        #expect(healthy.status.counters.rejected == 0, "\(name)")
        #expect(victim.status.counters.rejected == 0, "\(name)")
      }
      try victim.close()
    }
    try healthy.close()
    // It stays so.
    let outcome = try await look(pair)
    #expect(outcome == .same, "\(name)")
  }
}

/// Runs tasks on one thread at a time beside Swift's, which are only as many as cores: opening,
/// comparing and closing for half a minute there would keep other tests from theirs.
private final class OwnThread: TaskExecutor {
  private let queue = DispatchQueue(label: "flipped bits")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
