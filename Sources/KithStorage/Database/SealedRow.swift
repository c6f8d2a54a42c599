import KithCore
import KithCrypto

/// A row as its table has it: sealed, with its key, so that a row with a flipped bit does not open,
/// and none counts as another.
struct SealedRow {
  /// Of the commit that wrote a row. The clock is that of the newest row.
  struct Stamp {
    /// 1, 2, 3 …
    var number: UInt64 = 0
    var clock = HybridTime.zero
  }

  var stamp: Stamp
  var key: RowKey
  /// The digest of the key's bytes.
  var name: Digest128
  /// A part of the opened box: most rows are only counted when all are read.
  var bytes: ArraySlice<UInt8>
}

/// A row that is looked for by its key.
struct SoughtRow {
  let table: RowTable
  /// The bytes of the key.
  let key: [UInt8]
  /// Their digest.
  let name: Digest128

  init(_ key: RowKey) {
    table = key.table
    self.key = key.bytes
    name = Blake2b.digest128(self.key)
  }
}

/// A row whose key is known, before it is opened.
struct FoundRow {
  var id: Int64
  /// The bytes of the key.
  var key: [UInt8]
  /// The sealed bytes, or those of both copies of a vital row.
  var copies: [[UInt8]]
}

/// Seals rows under the storage key, on any thread.
final class RowSeal: Sendable {
  /// Of the stamp before a key, in bytes.
  private static let stampBytes = 16
  /// More than any key has: decoding a key copies the bytes that it is given.
  private static let mostKeyBytes = 512
  /// Opening a row takes as long as opening so many bytes more.
  private static let rowCostBytes = 1 << 10
  /// Less work is done sooner than a thread starts.
  private static let leastParallelBytes = 128 << 10
  private static let rowsOfPiece = 8

  private let key: StorageKey

  init(key: consuming StorageKey) { self.key = key }

  /// `key`: the bytes of the row's key.
  func seal(
    _ bytes: [UInt8], as key: [UInt8], _ stamp: SealedRow.Stamp, nonce: BoxNonce
  ) -> [UInt8] {
    var plaintext: [UInt8] = []
    plaintext.reserveCapacity(Self.stampBytes + key.count + bytes.count)
    for number in [stamp.number, stamp.clock.rawValue] {
      withUnsafeBytes(of: number.bigEndian) { plaintext.append(contentsOf: $0) }
    }
    plaintext += key
    plaintext += bytes
    return self.key.seal(plaintext, nonce: nonce)
  }

  /// Nil if it is damaged, or another key sealed it.
  func open(_ sealed: [UInt8]) -> SealedRow? {
    guard let plaintext = try? key.open(sealed),
      let number = UInt64(row: plaintext.prefix(8)),
      let clock = UInt64(row: plaintext.dropFirst(8).prefix(8)).map(HybridTime.init(rawValue:))
    else { return nil }
    let keyed = plaintext.dropFirst(Self.stampBytes)
    let head = keyed.prefix(Self.mostKeyBytes)
    var rest = head
    guard let key = RowKey(removingFrom: &rest) else { return nil }
    let keyBytes = head.dropLast(rest.count)
    return SealedRow(
      stamp: SealedRow.Stamp(number: number, clock: clock), key: key,
      name: Blake2b.digest128(keyBytes), bytes: keyed.dropFirst(keyBytes.count))
  }

  /// The bytes of a row, from its first copy that opens and has its key.
  func open(_ row: FoundRow) -> [UInt8]? {
    for sealed in row.copies {
      guard let plaintext = try? key.open(sealed) else { continue }
      // No key's bytes begin with those of another.
      let keyed = plaintext.dropFirst(Self.stampBytes)
      if keyed.starts(with: row.key) { return Array(keyed.dropFirst(row.key.count)) }
    }
    return nil
  }

  /// As ``open(_:)`` for each row, in order; many are opened on all free processors. `meanwhile`
  /// runs on this thread, which opens rows after it.
  func open(all rows: [[UInt8]], meanwhile: () -> Void) -> [SealedRow?] {
    values(of: rows, bytes: { $0.count }, meanwhile: meanwhile, { self.open($0) })
  }

  /// As ``open(_:)`` for each row that was found, in order; many are opened on all free processors.
  func open(all rows: [FoundRow?]) -> [[UInt8]?] {
    values(
      of: rows, bytes: { $0?.copies.first?.count ?? 0 }, { row in row.flatMap { self.open($0) } })
  }

  private func values<Row: Sendable, Value: Sendable>(
    of rows: [Row], bytes: (Row) -> Int, meanwhile: () -> Void = {},
    _ value: @escaping @Sendable (Row) -> Value
  ) -> [Value] {
    let cost = rows.reduce(0) { $0 + Self.rowCostBytes + bytes($1) }
    guard cost > Self.leastParallelBytes else {
      meanwhile()
      return rows.map(value)
    }
    return HelperThreads.values(rows.count, by: Self.rowsOfPiece, meanwhile: meanwhile) {
      value(rows[$0])
    }
  }
}
