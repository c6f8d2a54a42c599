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
  var bytes: [UInt8]
}

/// Seals rows under the storage key.
struct RowSeal: ~Copyable {
  private let key: StorageKey

  init(key: consuming StorageKey) { self.key = key }

  /// `key`: the bytes of the row's key.
  borrowing func seal(
    _ bytes: [UInt8], as key: [UInt8], _ stamp: SealedRow.Stamp, nonce: BoxNonce
  ) -> [UInt8] {
    var plaintext: [UInt8] = []
    plaintext.reserveCapacity(16 + key.count + bytes.count)
    for number in [stamp.number, stamp.clock.rawValue] {
      withUnsafeBytes(of: number.bigEndian) { plaintext.append(contentsOf: $0) }
    }
    plaintext += key
    plaintext += bytes
    return self.key.seal(plaintext, nonce: nonce)
  }

  /// Nil if it is damaged, or another key sealed it.
  borrowing func open(_ sealed: [UInt8]) -> SealedRow? {
    guard let plaintext = try? key.open(sealed),
      let number = UInt64(row: plaintext.prefix(8)),
      let clock = UInt64(row: plaintext.dropFirst(8).prefix(8)).map(HybridTime.init(rawValue:))
    else { return nil }
    var rest = plaintext[16...]
    guard let key = RowKey(removingFrom: &rest) else { return nil }
    return SealedRow(
      stamp: SealedRow.Stamp(number: number, clock: clock), key: key, bytes: Array(rest))
  }
}
