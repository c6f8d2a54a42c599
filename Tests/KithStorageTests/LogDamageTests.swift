import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import KithStorage

/// A flipped bit in a write-ahead log took the last commits along, without a word.
@Suite struct LogDamageTests {
  private let store = MutationSource.stores[0]

  private func draft(_ number: UInt64) -> [Mutation] {
    [
      .put(
        .store(store, .draft(number)),
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 9_000))
    ]
  }

  /// A log that SQLite has begun anew once, so that frames of before lie behind those that count; and
  /// how long it was before the last commit.
  private func log(_ device: OpenDevice, _ path: String) throws -> (bytes: Data, last: Int) {
    try device.storage.commit([.put(.store(store, .policy), Policy.standard.row)])
    for number in 1...12 as ClosedRange<UInt64> { try device.storage.commit(draft(number)) }
    try device.storage.execute("PRAGMA wal_checkpoint(RESTART)")
    let old = try Data(contentsOf: URL(fileURLWithPath: path))
    for number in 13...16 as ClosedRange<UInt64> { try device.storage.commit(draft(number)) }
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    try device.storage.commit(draft(17))
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(bytes.count == old.count, "the log is used again")
    let last = try #require(zip(before, bytes).enumerated().first { $0.1.0 != $0.1.1 }?.offset)
    return (bytes, last)
  }

  @Test func `damage is told from a crash`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let (bytes, last) = try log(device, directory.device + "/kith.sqlite-wal")
    try device.close()
    let copy = directory.path + "/log"
    let file = URL(fileURLWithPath: copy)
    func isDamaged(_ bytes: Data) throws -> Bool {
      try bytes.write(to: file)
      return (WriteAheadLog(copy)?.isDamaged ?? false)
    }
    #expect(try !isDamaged(bytes))
    #expect(try !isDamaged(Data()))
    // A crash leaves nothing of the last commit, a part, or parts out of order.
    for end in stride(from: last, to: bytes.count, by: 509) {
      #expect(try !isDamaged(bytes.prefix(end)), "cut at \(end)")
    }
    for hole in stride(from: last, to: bytes.count - 512, by: 512) {
      var torn = bytes
      torn.replaceSubrange(hole..<hole + 512, with: Data(count: 512))
      #expect(try !isDamaged(torn), "a hole at \(hole)")
    }
    // A bit anywhere before the commit that precedes it.
    let frame = 4_096 + 24
    for offset in stride(from: 0, to: last - 5 * frame, by: 97) {
      var flipped = bytes
      flipped[offset] ^= 1 << UInt8(offset % 8)
      // SQLite checks neither the version's use nor the number of the checkpoint but by the sum.
      #expect(try isDamaged(flipped), "bit \(offset % 8) of byte \(offset), of \(last)")
    }
  }

  @Test func `the commits lost with a damaged log count as missing`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let path = directory.device + "/kith.sqlite"
    let (log, _) = try log(device, path + "-wal")
    let database = try Data(contentsOf: URL(fileURLWithPath: path))
    try device.close()
    // As a kill leaves it, but for a bit in the first of its commits.
    var flipped = log
    flipped[2_000] ^= 1
    for (path, bytes) in [(path, database), (path + "-wal", flipped)] {
      try bytes.write(to: URL(fileURLWithPath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }
    let again = try DeviceDirectory.open(at: directory.device)
    for _ in 0..<2 {
      let damage = try again.storage.outline().damage
      #expect(damage == StorageDamage(rows: 1, loss: StoreLoss()))
    }
    try again.storage.commit([.remove(.damaged)])
    #expect(try again.storage.outline().damage == StorageDamage())
    try again.close()
    let third = try DeviceDirectory.open(at: directory.device)
    #expect(try third.storage.outline().damage == StorageDamage())
    try third.close()
  }
}
