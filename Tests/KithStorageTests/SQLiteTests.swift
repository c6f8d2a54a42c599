import Foundation
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import KithStorage

@Suite struct SQLiteTests {
  let store = MutationSource.stores[0]

  func begin(_ directory: TestDirectory) throws -> OpenDevice {
    try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(),
      initial: [.put(.store(store, .policy), Policy.standard.row)])
  }

  func copy(_ from: String, _ to: String) throws {
    try FileManager.default.copyItem(atPath: from, toPath: to)
  }

  @Test func nothingOfARowIsInTheClear() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let planted = Array("a planted key and its planted value".utf8)
    let hidden = try #require(StoreIdentifier("com.example.planted"))
    try device.storage.commit([
      .put(.store(store, .draft(1)), planted + planted),
      .put(.store(store, .refusal(1)), planted), .put(.store(store, .pastValue(1)), planted),
      .put(.record(Blake2b.digest256([1])), planted), .put(.store(hidden, .opened), [1]),
      .addresses(DeviceID { $0[0] = 1 }, ["planted.local:1"]),
    ])
    try device.storage.setCarriers(planted)
    func found() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory.device).filter { name in
        let data = try Data(contentsOf: URL(fileURLWithPath: directory.device + "/" + name))
        return data.range(of: Data("planted".utf8)) != nil
      }
    }
    #expect(try found() == [])
    try device.close()
    #expect(try found() == [])
    let again = try DeviceDirectory.open(at: directory.device)
    #expect(try again.storage.load().stores[store]?.refusals == [1: planted])
    #expect(try again.storage.carriers() == planted)
  }

  @Test func nothingIsDurableInADeletedFile() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let draft = RowKey.store(store, .draft(1))
    let moved = directory.device + ".moved"
    try FileManager.default.moveItem(atPath: directory.device, toPath: moved)
    try device.storage.commit([.put(draft, [1])])
    try FileManager.default.removeItem(atPath: moved)
    #expect(throws: StorageError.deleted(device.storage.path)) {
      try device.storage.commit([.put(draft, [2])])
    }
    #expect(try device.storage.rows([draft]) == [[1]])
  }

  @Test func aRowWithAFlippedBitDoesNotOpen() throws {
    var random = SystemRandom()
    let seal = RowSeal(key: StorageKey(random: &random))
    let stamp = SealedRow.Stamp(number: 3, clock: HybridTime(rawValue: 4))
    let key = RowKey.store(store, .draft(1))
    let sealed = seal.seal([5], as: key.bytes, stamp, nonce: random.draw())
    let opened = seal.open(sealed)
    #expect(opened?.key == key && opened?.bytes == [5])
    #expect(opened?.stamp.number == 3 && opened?.stamp.clock == stamp.clock)
    for index in sealed.indices {
      for bit in 0..<8 {
        var flipped = sealed
        flipped[index] ^= 1 << UInt8(bit)
        #expect(seal.open(flipped) == nil)
      }
    }
    #expect(RowSeal(key: StorageKey(random: &random)).open(sealed) == nil)
  }

  @Test func aCopiedDirectoryIsACopyUntilItTakesAnIncarnation() throws {
    let directory = try TestDirectory()
    try begin(directory).close()
    let other = directory.path + "/copy"
    try copy(directory.device, other)
    for _ in 0..<2 {
      let device = try DeviceDirectory.open(at: other)
      #expect(device.storage.isCopy)
      try device.storage.commit([.put(.clock, HybridTime(rawValue: 6).row)])
      try device.close()
    }
    let device = try DeviceDirectory.open(at: other)
    try device.storage.commit([.put(.incarnation, Incarnation(rawValue: 2).row)])
    #expect(!device.storage.isCopy)
    try device.close()
    #expect(try !DeviceDirectory.open(at: other).storage.isCopy)
    #expect(try !DeviceDirectory.open(at: directory.device).storage.isCopy)
  }

  @Test func anOldDatabasePutBackInPlaceIsACopy() throws {
    let directory = try TestDirectory()
    try begin(directory).close()
    let path = directory.device + "/kith.sqlite"
    let old = try Data(contentsOf: URL(fileURLWithPath: path))
    try DeviceDirectory.open(at: directory.device).close()
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.write(contentsOf: old)
    try file.truncate(atOffset: UInt64(old.count))
    try file.close()
    #expect(try DeviceDirectory.open(at: directory.device).storage.isCopy)
  }

  @Test func whatStaysInPlaceIsNoCopy() throws {
    let directory = try TestDirectory()
    var device: OpenDevice? = try begin(directory)
    // Ended without closing, as by a kill; then moved within the file system.
    device = nil
    #expect(device == nil)
    let moved = directory.path + "/moved"
    try FileManager.default.moveItem(atPath: directory.device, toPath: moved)
    for _ in 0..<3 { #expect(try !DeviceDirectory.open(at: moved).storage.isCopy) }
  }

  @Test func aNewerSchemaIsRefusedAndLeftAlone() throws {
    let directory = try TestDirectory()
    try begin(directory).close()
    let path = directory.device + "/kith.sqlite"
    try patch(path, at: 60, [0, 0, 0, 99])  // user_version
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(error?.code == .newerSchema)
    #expect(error?.message.contains("99") == true)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test func aSchemaBeforeTheFirstReleaseIsRefusedAndLeftAlone() throws {
    let directory = try TestDirectory()
    try begin(directory).close()
    let path = directory.device + "/kith.sqlite"
    try patch(path, at: 60, [0, 0, 0, 3])  // user_version
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(error?.code == .olderSchema)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  func patch(_ path: String, at offset: UInt64, _ bytes: [UInt8]) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: offset)
    try file.write(contentsOf: bytes)
    try file.close()
  }

  /// Bytes to overwrite, or the length to cut to.
  @Test(arguments: [(0, nil), (18, nil), (68, nil), (100, nil), (0, 0), (0, 1_000), (0, 8_192)])
  func aDamagedDatabaseIsNamedAndNotMadeAnew(offset: Int, cut: Int?) throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    try device.storage.commit([.put(.store(store, .draft(1)), [UInt8](repeating: 1, count: 20_000))]
    )
    try device.close()
    let path = directory.device + "/kith.sqlite"
    if let cut {
      #expect(truncate(path, cut) == 0)
    } else {
      try patch(path, at: UInt64(offset), [0xff, 0xff, 0xff, 0xff])
    }
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device).storage.load()
    }
    #expect(error?.code == .damaged)
    #expect(error?.path == path)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == before.count)
  }

  @Test func aDamagedDraftIsNamed() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    try device.storage.commit([
      .put(.store(store, .draft(42)), [UInt8](repeating: 1, count: 20_000))
    ])
    try device.close()
    let path = directory.device + "/kith.sqlite"
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    try patch(path, at: UInt64(size - 5_000), [1, 2, 3, 4])
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device).storage.load()
    }
    #expect(error?.code == .damaged)
    #expect(error?.message.contains("row 1 of table own") == true)
  }

  @Test func aDamagedPastValueIsDroppedAlone() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    try device.storage.commit([
      .put(.store(store, .pastValue(41)), [1]),
      .put(.store(store, .pastValue(42)), [UInt8](repeating: 1, count: 20_000)),
    ])
    try device.close()
    let path = directory.device + "/kith.sqlite"
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    try patch(path, at: UInt64(size - 5_000), [1, 2, 3, 4])
    let again = try DeviceDirectory.open(at: directory.device)
    let outline = try again.storage.outline()
    #expect(outline.snapshot.stores[store]?.pastValues == [41: [1]])
    #expect(outline.damage == StorageDamage(rows: 1))
    try again.storage.commit([.remove(.damaged)])
    #expect(try again.storage.outline().damage.rows == 0)
  }

  /// A full history drops one value for each that it keeps.
  @Test func aPastValueTakesTheRowOfADroppedOne() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    for number in 1...40 as ClosedRange<UInt64> {
      try device.storage.commit(
        (number > 10 ? [.remove(.store(store, .pastValue(number - 10)))] : [])
          + [.put(.store(store, .pastValue(number)), [UInt8(number)])])
    }
    let found = try device.storage.load().stores[store]?.pastValues
    #expect(found?.keys.sorted() == Array(31...40))
    // A higher row id breaks the check, and so the commit.
    try device.storage.execute(
      "CREATE TEMP TABLE most (id INTEGER CHECK (id <= 10)); "
        + "INSERT INTO most SELECT id FROM spare")
  }

  private let reference = ChangeSetReference(
    device: DeviceID { $0[0] = 7 }, incarnation: Incarnation(rawValue: 1), sequence: 1,
    digest: Blake2b.digest256([1]))

  /// The row does not tell its store.
  @Test func aDamagedSharedRowMayBeOfAnyStore() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let header = StoredChangeSet(header: [1], signature: [1]).row
    try device.storage.commit([
      .put(.store(store, .changeSet(reference)), header),
      .put(.store(store, .entry(reference, 0)), [1]),
      .put(.store(store, .entry(reference, 1)), [2]),
      .put(.clock, HybridTime(rawValue: 9).row),
    ])
    try device.storage.execute("UPDATE shared SET sealed = x'00' WHERE id = 2")
    let outline = try device.storage.outline()
    #expect(outline.damage == StorageDamage(rows: 1, loss: StoreLoss(rows: 1)))
    #expect(outline.changeSets[store] == [reference: [1]])
    try device.storage.commit([.remove(.damaged)])
    #expect(try device.storage.outline().damage == StorageDamage())
    #expect(
      try device.storage.load().stores[store]?.changeSets[reference]
        == StoredChangeSet(header: [1], signature: [1], entries: [1: [2]]))
  }

  /// They are opened in batches, on several threads.
  @Test func ofManyRowsOnlyTheDamagedOneIsLeftOut() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    var entries: [UInt32: [UInt8]] = [:]
    for index in 0..<1_500 as Range<UInt32> {
      entries[index] = [UInt8](repeating: UInt8(index % 251), count: 600)
    }
    var mutations: [Mutation] = [
      .put(.store(store, .changeSet(reference)), StoredChangeSet(header: [1], signature: [1]).row)
    ]
    for (index, bytes) in entries.sorted(by: { $0.key < $1.key }) {
      mutations.append(.put(.store(store, .entry(reference, index)), bytes))
    }
    try device.storage.commit(mutations)
    #expect(try device.storage.load().stores[store]?.changeSets[reference]?.entries == entries)
    // Row 1 is the header.
    try device.storage.execute("UPDATE shared SET sealed = x'00' WHERE id = 702")
    entries[700] = nil
    let outline = try device.storage.outline()
    #expect(outline.damage == StorageDamage(rows: 1, loss: StoreLoss(rows: 1)))
    #expect(
      try device.storage.load(outline).stores[store]?.changeSets[reference]?.entries == entries)
  }

  /// A batch is read before the rows of the one before are judged.
  @Test func theFirstOfTwoDamagesIsNamed() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let store = store
    let numbers = 1...1_300 as ClosedRange<UInt64>
    try device.storage.commit(numbers.map { .put(.store(store, .draft($0)), [1]) })
    // A row id that is too high.
    try device.storage.execute("UPDATE own SET id = 1 << 48 WHERE id = 1300")
    let late = #expect(throws: StorageError.self) { _ = try device.storage.outline() }
    #expect(late?.message.contains("row \(1 << 48) of table own is damaged") == true)
    try device.storage.execute("UPDATE own SET sealed = x'00' WHERE id = 600")
    let early = #expect(throws: StorageError.self) { _ = try device.storage.outline() }
    #expect(early?.message.contains("row 600 of table own is damaged") == true)
  }

  /// Rows with consecutive ids are read together.
  @Test func rowsComeInTheOrderOfTheirKeys() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let store = store
    let numbers = 1...9 as ClosedRange<UInt64>
    try device.storage.commit(numbers.map { .put(.store(store, .draft($0)), [UInt8($0)]) })
    try device.storage.commit(numbers.map { .put(.store(store, .pastValue($0)), [UInt8($0)]) })
    try device.storage.commit([.remove(.store(store, .draft(4)))])
    var keys: [RowKey] = [.store(store, .policy), .incarnation]
    var expected: [[UInt8]?] = [Policy.standard.row, nil]
    for number in [1, 2, 3, 4, 5, 6, 6, 3, 2, 8, 9, 7] as [UInt64] {
      keys.append(.store(store, .draft(number)))
      expected.append(number == 4 ? nil : [UInt8(number)])
    }
    // The ids go on from those of the drafts, in another table.
    for number in [8, 9, 20, 1] as [UInt64] {
      keys.append(.store(store, .pastValue(number)))
      expected.append(number == 20 ? nil : [UInt8(number)])
    }
    #expect(try device.storage.rows(keys) == expected)
    #expect(try device.storage.rows([]) == [])
    for (sql, row) in [
      ("UPDATE own SET sealed = x'00' WHERE id = 8", 8), ("DELETE FROM own WHERE id = 2", 2),
    ] {
      try device.storage.execute(sql)
      let error = #expect(throws: StorageError.self) { _ = try device.storage.rows(keys) }
      #expect(error?.message.hasPrefix("row \(row) of table own is damaged") == true)
    }
  }

  /// The newest row is lost, and the clock was set back before.
  @Test func aLostClockGoesOnBehindAllOthers() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    for clock in [9, 5, 7] as [UInt64] {
      try device.storage.commit([
        .put(.store(store, .pastValue(clock)), [1]), .put(.clock, clock.row),
      ])
    }
    #expect(try device.storage.load().clock == HybridTime(rawValue: 7))
    try device.storage.execute("UPDATE spare SET sealed = x'00' WHERE id = 3")
    #expect(try device.storage.load().clock == HybridTime(rawValue: 9))
  }

  @Test(arguments: ["vital", "vital_copy"])
  func aVitalRowIsKeptTwice(table: String) throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    try device.storage.commit([.put(.record(Blake2b.digest256([1])), [1, 2])])
    #expect(try device.storage.outline().damage == StorageDamage())
    let before = try device.storage.load()
    for sql in ["UPDATE \(table) SET sealed = x'00'", "DELETE FROM \(table) WHERE id > 1"] {
      try device.storage.execute(sql)
      let outline = try device.storage.outline()
      #expect(outline.snapshot == before && outline.damage.rows > 0 && outline.damage.loss == nil)
      // The other copy was written again.
      #expect(try device.storage.outline().damage == StorageDamage())
    }
    try device.storage.execute(
      "UPDATE vital SET sealed = x'00' WHERE id = 2;"
        + "UPDATE vital_copy SET sealed = x'00' WHERE id = 2")
    let error = #expect(throws: StorageError.self) { _ = try device.storage.outline() }
    #expect(error?.message.contains("row 2 of table vital is damaged") == true)
  }

  @Test func everyAcknowledgedCommitIsInACopyTakenAtAnyMoment() async throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let acknowledged = Counter()
    let store = store
    let writer = Task.detached {
      for number in 1...3_000 as ClosedRange<UInt64> where !Task.isCancelled {
        try device.storage.commit([
          .put(.clock, HybridTime(rawValue: number).row),
          .put(.store(store, .draft(number)), [UInt8](repeating: 1, count: 700)),
        ])
        acknowledged.set(number)
      }
    }
    for round in 0..<6 {
      try await Task.sleep(for: .milliseconds(40))
      let promised = acknowledged.get()
      let other = directory.path + "/crash-\(round)"
      try FileManager.default.createDirectory(
        atPath: other, withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o700])
      // A crash keeps all files as of one moment. The log copied after the database holds all that a
      // checkpoint may have been copying meanwhile, unless it began anew in between.
      var salts: [Data] = []
      repeat {
        salts = [try logSalts(of: directory.device)]
        for name in ["lock", "secrets", "kith.sqlite", "kith.sqlite-wal"] {
          let target = "\(other)/\(name)"
          if FileManager.default.fileExists(atPath: target) {
            try FileManager.default.removeItem(atPath: target)
          }
          try copy("\(directory.device)/\(name)", target)
        }
        salts.append(try logSalts(of: directory.device))
      } while salts[0] != salts[1]
      let snapshot = try DeviceDirectory.open(at: other).storage.load()
      #expect(snapshot.clock.rawValue >= promised)
      #expect(UInt64(snapshot.stores[store]?.drafts.count ?? 0) == snapshot.clock.rawValue)
    }
    writer.cancel()
    try await writer.value
  }

  /// The salts that tell one log from the next: bytes 16 to 23 of its header
  /// (sqlite.org/fileformat2.html, section 4.1).
  private func logSalts(of directory: String) throws -> Data {
    let file = try FileHandle(forReadingFrom: URL(filePath: "\(directory)/kith.sqlite-wal"))
    defer { try? file.close() }
    return try file.read(upToCount: 32)?.dropFirst(16).prefix(8) ?? Data()
  }
}

/// A number that two threads share.
final class Counter: @unchecked Sendable {
  // Unchecked: guarded by `lock`.
  private let lock = NSLock()
  private var value: UInt64 = 0

  func set(_ value: UInt64) { lock.withLock { self.value = value } }
  func get() -> UInt64 { lock.withLock { value } }
}
