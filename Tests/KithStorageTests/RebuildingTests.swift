import Foundation
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import KithStorage

/// A bit in the structure of the database flips: SQLite refuses the file then, though nearly all rows
/// can be read.
@Suite(.timeLimit(.minutes(5))) struct RebuildingTests {
  private let store = MutationSource.stores[0]

  /// A stopped device with some of everything, and pages that are free again.
  private struct Victim {
    let directory = try? TestDirectory()
    let path: String
    let content: Data
    let lock: Data
    let snapshot: Snapshot

    init(seed: UInt64, drafts: Bool = true) throws {
      path = try #require(directory).device
      var source = MutationSource(seed: seed)
      let device = try DeviceDirectory.create(
        at: path, secrets: newSecrets(),
        initial: MutationSource.stores.map { .put(.store($0, .policy), Policy.standard.row) } + [
          .put(.incarnation, Incarnation(rawValue: 7).row),
          .put(.record(Digest256 { $0[0] = 9 }), [1, 2, 3]),
        ])
      for _ in 0..<120 {
        try device.storage.commit(source.mutations(6).filter { drafts || !$0.isOwn })
      }
      for number in 0..<200 as Range<UInt64> {
        let reference = ChangeSetReference(
          device: source.device(), incarnation: Incarnation(rawValue: 5), sequence: number + 10,
          digest: Blake2b.digest256([UInt8(number)]))
        try device.storage.commit([
          .put(
            .store(MutationSource.stores[1], .changeSet(reference)),
            StoredChangeSet(header: source.random.bytes(120), signature: source.random.bytes(64))
              .row),
          .put(.store(MutationSource.stores[1], .entry(reference, 0)), source.random.bytes(300)),
        ])
        if number.isMultiple(of: 3) {
          try device.storage.commit([
            .remove(.store(MutationSource.stores[1], .changeSet(reference)))
          ])
        }
      }
      for store in MutationSource.stores {
        try device.storage.commit([
          .put(
            .store(
              store,
              .vector(ChainID(device: source.device(), incarnation: Incarnation(rawValue: 5)))),
            UInt64(400).row), .put(.store(store, .opened), [1]),
        ])
      }
      snapshot = try device.storage.load()
      try device.close()
      content = try Data(contentsOf: URL(filePath: path + "/kith.sqlite"))
      lock = try Data(contentsOf: URL(filePath: path + "/lock"))
    }

    var database: String { path + "/kith.sqlite" }

    /// Puts the database back, changed, in place.
    func write(_ change: (inout Data) -> Void) throws {
      for name in try FileManager.default.contentsOfDirectory(atPath: path)
      where name.hasPrefix("kith.sqlite") && name != "kith.sqlite" {
        try FileManager.default.removeItem(atPath: path + "/" + name)
      }
      var bytes = content
      change(&bytes)
      for (file, bytes) in [("/kith.sqlite", bytes), ("/lock", lock)] {
        let handle = try FileHandle(forUpdating: URL(filePath: path + file))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: bytes)
        try handle.close()
      }
    }

    /// A byte that is not a row's: of a page's header or its cell pointers, or of the file's header.
    func structuralByte(_ random: inout SeededEntropy) -> Int {
      let page = Int.random(in: 0..<content.count / 4_096, using: &random)
      if page == 0 { return Int.random(in: 16..<130, using: &random) }
      return 4_096 * page
        + [0, Int.random(in: 1..<12, using: &random), Int.random(in: 8..<40, using: &random)][
          Int.random(in: 0..<3, using: &random)]
    }
  }

  @Test func `a flipped bit of the structure loses nothing that only this device has`() throws {
    let seed = testSeed("rebuilding")
    var random = SeededEntropy(seed: seed)
    let victim = try Victim(seed: seed)
    var outcomes: [String: Int] = [:]
    for _ in 0..<250 {
      let (offset, bit) = (victim.structuralByte(&random), Int.random(in: 0..<8, using: &random))
      try victim.write { $0[offset] ^= 1 << UInt8(bit) }
      outcomes[try check(victim, "seed \(seed), bit \(bit) of byte \(offset)"), default: 0] += 1
    }
    print("flipped bits of the structure: \(outcomes.sorted { $0.key < $1.key })")
    #expect(outcomes["rebuilt"] ?? 0 > 20)
    // The tables of drafts and refusals are small.
    #expect(outcomes["refused"] ?? 0 < 40)
  }

  /// After opening the device has all that it had, or it says which parts are missing.
  private func check(_ victim: Victim, _ place: Comment) throws -> String {
    let device: OpenDevice
    do {
      device = try DeviceDirectory.open(at: victim.path)
    } catch {
      #expect([.damaged, .newerSchema].contains(error.code), place)
      #expect(error.path == victim.database && error.message.contains("--repair"), place)
      return "refused"
    }
    defer { try? device.close() }
    let damage = try device.storage.outline().damage
    let found = try device.storage.load()
    let before = victim.snapshot
    #expect(found.records == before.records && found.keepsHistory == before.keepsHistory, place)
    for (name, old) in before.stores {
      let new = try #require(found.stores[name], place)
      #expect(new.drafts == old.drafts && new.refusals == old.refusals, place)
      #expect(new.policy == old.policy && new.adopted == old.adopted, place)
      #expect(new.isUsedHere == old.isUsedHere, place)
      // No row is another's, nor one that was removed.
      for (reference, changeSet) in new.changeSets {
        let known = try #require(old.changeSets[reference], place)
        // Empty: the row of the header is lost, and those of entries are not.
        #expect(changeSet.header == known.header || changeSet.header.isEmpty, place)
        for (index, box) in changeSet.entries { #expect(known.entries[index] == box, place) }
      }
      let isWhole = new.changeSets == old.changeSets && new.vector == old.vector
      let isSaid = damage.loss != nil || new.vector.isEmpty && !new.lost.isEmpty
      #expect(isWhole || isSaid, place)
    }
    guard let rebuilt = device.rebuilt else { return "sound" }
    #expect(!rebuilt.lacksOwn && FileManager.default.fileExists(atPath: rebuilt.damaged), place)
    #expect(found.clock >= before.clock || rebuilt.lacksShared, place)
    #expect(found.incarnation == nil, place)
    return "rebuilt"
  }

  @Test func `pages that are lost whole are mended too`() throws {
    let seed = testSeed("lost pages")
    var random = SeededEntropy(seed: seed)
    let victim = try Victim(seed: seed)
    var outcomes: [String: Int] = [:]
    for page in 0..<victim.content.count / 4_096 {
      try victim.write {
        let start = page * 4_096
        $0.replaceSubrange(
          start..<start + 4_096,
          with: page.isMultiple(of: 2) ? Data(count: 4_096) : Data(random.bytes(4_096)))
      }
      outcomes[try check(victim, "seed \(seed), page \(page)"), default: 0] += 1
    }
    print("lost pages: \(outcomes.sorted { $0.key < $1.key })")
    #expect(outcomes["rebuilt"] ?? 0 > 10)
  }

  /// A page of drafts is damaged: whether one is missing cannot be known.
  @Test func `drafts that may be missing need a person's word`() throws {
    let victim = try Victim(seed: 3)
    let page = try #require(try root(of: "own", in: victim))
    try victim.write { $0[(page - 1) * 4_096] ^= 0x40 }
    let before = try Data(contentsOf: URL(filePath: victim.database))
    for _ in 0..<2 {
      let error = #expect(throws: StorageError.self) {
        _ = try DeviceDirectory.open(at: victim.path)
      }
      #expect(error?.code == .damaged && error?.message.contains("kith doctor --repair") == true)
    }
    #expect(try Data(contentsOf: URL(filePath: victim.database)) == before)
    #expect(try DeviceDirectory.repair(victim.path) { _ in false } == nil)
    let rebuilt = try DeviceDirectory.repair(victim.path) { plan in
      #expect(plan.lacksOwn)
      return true
    }
    #expect(rebuilt?.lacksOwn == true && rebuilt?.damaged == victim.database + ".damaged-1")
    #expect(try Data(contentsOf: URL(filePath: victim.database + ".damaged-1")) == before)
    let device = try DeviceDirectory.open(at: victim.path)
    #expect(device.rebuilt == nil)
    #expect(try device.storage.load().records == victim.snapshot.records)
    try device.close()
    #expect(try DeviceDirectory.repair(victim.path) { _ in true } == nil)
    try DeviceDirectory.remove(victim.path)
    #expect(try FileManager.default.contentsOfDirectory(atPath: victim.path) == ["lock"])
  }

  private func root(of table: String, in victim: Victim) throws -> Int? {
    try DatabasePages(DatabaseImage(victim.database), roots: Schema.roots()).trees[table]?.pages
      .min()
  }

  @Test func `the pages that are read are those of SQLite`() throws {
    let victim = try Victim(seed: 4)
    let pages = try DatabasePages(DatabaseImage(victim.database), roots: [:])
    #expect(pages.trees.count == 5 && pages.trees.values.allSatisfy(\.isSound))
    #expect(pages.trees.mapValues { $0.pages.min() } == (try Schema.roots()).mapValues { $0 })
  }

  /// A killed process leaves commits in the log alone.
  @Test func `commits of the log count`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(),
      initial: [
        .put(.store(store, .policy), Policy.standard.row),
        .put(.record(Digest256 { $0[0] = 1 }), [1]),
      ])
    for number in 0..<20 as Range<UInt64> {
      try device.storage.commit([
        .put(.store(store, .draft(number)), [UInt8](repeating: 9, count: 900))
      ])
    }
    let copy = directory.path + "/copy"
    try FileManager.default.createDirectory(
      atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for name in ["lock", "secrets", "kith.sqlite", "kith.sqlite-wal"] {
      try FileManager.default.copyItem(
        atPath: "\(directory.device)/\(name)", toPath: "\(copy)/\(name)")
    }
    let file = try FileHandle(forUpdating: URL(filePath: copy + "/kith.sqlite"))
    try file.seek(toOffset: 21)
    try file.write(contentsOf: [0x41])
    try file.close()
    let again = try DeviceDirectory.open(at: copy)
    #expect(again.rebuilt?.drafts == 20 && again.rebuilt?.lacksShared == false)
    #expect(try again.storage.load().stores[store]?.drafts.count == 20)
    #expect(FileManager.default.fileExists(atPath: copy + "/kith.sqlite.damaged-1-wal"))
  }

  /// A new kind of row must be salvaged too.
  @Test func `a rebuilt database has every kind of row`() throws {
    let victim = try Victim(seed: 8)
    try victim.write { $0[21] ^= 1 }
    let device = try DeviceDirectory.open(at: victim.path)
    #expect(device.rebuilt?.lacksShared == false && device.rebuilt?.lacksOwn == false)
    var expected = victim.snapshot
    (expected.incarnation, expected.carriers) = (nil, [:])
    #expect(try device.storage.load() == expected)
    try device.close()
  }

  @Test func `a disk that damages again and again is said`() throws {
    let victim = try Victim(seed: 5)
    for number in 1...Layout.mostDamaged + 1 {
      let file = try FileHandle(forUpdating: URL(filePath: victim.database))
      try file.seek(toOffset: 21)
      try file.write(contentsOf: [0x41])
      try file.close()
      if number <= Layout.mostDamaged {
        try DeviceDirectory.open(at: victim.path).close()
      } else {
        let error = #expect(throws: StorageError.self) {
          _ = try DeviceDirectory.open(at: victim.path)
        }
        #expect(error?.message.contains("check the disk") == true)
      }
    }
  }

  @Test func `a copy in memory shows the same, and changes no file`() throws {
    let victim = try Victim(seed: 6)
    let names = try FileManager.default.contentsOfDirectory(atPath: victim.path)
    let device = try DeviceDirectory.openCopy(of: victim.path)
    #expect(try device.storage.load() == victim.snapshot)
    try device.storage.commit([.put(.store(store, .draft(99)), [1])])
    #expect(try device.storage.load().stores[store]?.drafts[99] == [1])
    try device.close()
    #expect(try Data(contentsOf: URL(filePath: victim.database)) == victim.content)
    #expect(try Data(contentsOf: URL(filePath: victim.path + "/lock")) == victim.lock)
    #expect(try FileManager.default.contentsOfDirectory(atPath: victim.path) == names)
  }
}

extension Mutation {
  /// Whether it changes what only this device has.
  fileprivate var isOwn: Bool {
    key.table == .own
  }
}
