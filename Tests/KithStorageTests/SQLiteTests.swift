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
      initial: [.putStore(store, .standard)])
  }

  func copy(_ from: String, _ to: String) throws {
    try FileManager.default.copyItem(atPath: from, toPath: to)
  }

  @Test func draftsRefusalsAndPastValuesAreNowhereInTheClear() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let planted = Array("a planted key and its planted value".utf8)
    try device.storage.commit([
      .putDraft(store, 1, planted + planted), .putRefusal(store, 1, planted),
      .putPastValue(store, 1, planted),
    ])
    func found() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: directory.device).filter { name in
        let data = try Data(contentsOf: URL(fileURLWithPath: directory.device + "/" + name))
        return data.range(of: Data("planted".utf8)) != nil
      }
    }
    #expect(try found() == [])
    try device.close()
    #expect(try found() == [])
    #expect(
      try DeviceDirectory.open(at: directory.device).storage.load().stores[store]?.refusals
        == [1: planted])
  }

  @Test func aSealedRowDoesNotOpenInAnothersPlace() throws {
    var random = SystemRandom()
    let seal = RowSeal(key: StorageKey(random: &random))
    let sealed = seal.seal([5], at: .draft(store, 1))
    #expect(seal.open(sealed, at: .draft(store, 1)) == [5])
    #expect(seal.open(sealed, at: .draft(store, 2)) == nil)
    #expect(seal.open(sealed, at: .refusal(store, 1)) == nil)
    #expect(seal.open(sealed, at: .pastValue(store, 1)) == nil)
    #expect(seal.open(sealed, at: .draft(MutationSource.stores[1], 1)) == nil)
  }

  @Test func aCopiedDirectoryIsACopyUntilItTakesAnIncarnation() throws {
    let directory = try TestDirectory()
    try begin(directory).close()
    let other = directory.path + "/copy"
    try copy(directory.device, other)
    for _ in 0..<2 {
      let device = try DeviceDirectory.open(at: other)
      #expect(device.storage.isCopy)
      try device.storage.commit([.setClock(HybridTime(rawValue: 6))])
      try device.close()
    }
    let device = try DeviceDirectory.open(at: other)
    try device.storage.commit([.setIncarnation(Incarnation(rawValue: 2))])
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
    try device.storage.commit([.putDraft(store, 1, [UInt8](repeating: 1, count: 20_000))])
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
    try device.storage.commit([.putDraft(store, 42, [UInt8](repeating: 1, count: 20_000))])
    try device.close()
    let path = directory.device + "/kith.sqlite"
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    try patch(path, at: UInt64(size - 5_000), [1, 2, 3, 4])
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device).storage.load()
    }
    #expect(error?.code == .damaged)
    #expect(error?.message.contains("row 42 of table draft") == true)
  }

  @Test func aDamagedPastValueIsDroppedAlone() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    try device.storage.commit([
      .putPastValue(store, 41, [1]),
      .putPastValue(store, 42, [UInt8](repeating: 1, count: 20_000)),
    ])
    try device.close()
    let path = directory.device + "/kith.sqlite"
    let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
    try patch(path, at: UInt64(size - 5_000), [1, 2, 3, 4])
    let again = try DeviceDirectory.open(at: directory.device)
    let outline = try again.storage.outline()
    #expect(outline.snapshot.stores[store]?.pastValues == [41: [1]])
    #expect(outline.damage.rows == 1 && outline.damage.stores.isEmpty)
    try again.storage.commit([.dropDamaged])
    #expect(try again.storage.outline().damage.rows == 0)
  }

  /// A full history drops one value for each that it keeps.
  @Test func aPastValueTakesTheRowOfADroppedOne() throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    for number in 1...40 as ClosedRange<UInt64> {
      try device.storage.commit(
        (number > 10 ? [.removePastValue(store, number - 10)] : [])
          + [.putPastValue(store, number, [UInt8(number)])])
    }
    let found = try device.storage.load().stores[store]?.pastValues
    #expect(found?.keys.sorted() == Array(31...40))
    // A higher row id breaks the check, and so the commit.
    try device.storage.execute(
      "CREATE TEMP TABLE most (id INTEGER CHECK (id <= 10)); "
        + "INSERT INTO most SELECT id FROM past_value")
  }

  /// The entry's row id names a change set of another store, which may be damaged itself.
  @Test(arguments: [false, true])
  func anEntryThatNamesTwoChangeSetsMayBeMissingInBothStores(isOtherDamaged: Bool) throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let stores = Array(MutationSource.stores.prefix(2))
    let reference = ChangeSetReference(
      device: DeviceID { $0.copyBytes(from: [UInt8](repeating: 7, count: 32)) },
      incarnation: Incarnation(rawValue: 1), sequence: 1, digest: Blake2b.digest256([1]))
    try device.storage.commit([.putStore(stores[1], .standard)])
    for store in stores {
      try device.storage.commit([
        .putHeader(store, reference, header: [1], signature: [1]),
        .putEntry(store, reference, index: 0, box: [1]),
        .putEntry(store, reference, index: 1, box: [2]),
      ])
    }
    #expect(try device.storage.outline().damage.stores.isEmpty)
    try device.storage.execute("UPDATE entry SET id = (2 << 32) | 9 WHERE id = (1 << 32) | 1")
    if isOtherDamaged {
      try device.storage.execute("UPDATE change_set SET header = x'00' WHERE id = 2")
    }
    let damage = try device.storage.outline().damage
    #expect(damage.stores[stores[0]] == StoreLoss(changeSets: 1, entries: 1))
    #expect(damage.stores[stores[1]]?.changeSets == 1)
  }

  @Test func everyAcknowledgedCommitIsInACopyTakenAtAnyMoment() async throws {
    let directory = try TestDirectory()
    let device = try begin(directory)
    let acknowledged = Counter()
    let store = store
    let writer = Task.detached {
      for number in 1...3_000 as ClosedRange<UInt64> where !Task.isCancelled {
        try device.storage.commit([
          .setClock(HybridTime(rawValue: number)),
          .putDraft(store, number, [UInt8](repeating: 1, count: 700)),
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

  @Test func theYardstickCommits() throws {
    let directory = try TestDirectory()
    let bare = try BareDatabase(path: directory.path + "/bare.sqlite")
    for _ in 0..<3 { try bare.commit([UInt8](repeating: 1, count: 200)) }
    try bare.close()
    #expect(throws: StorageError.self) { try bare.commit([]) }
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
