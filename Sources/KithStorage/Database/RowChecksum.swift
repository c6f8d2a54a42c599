import GRDB
import KithCore
import KithCrypto

/// Detects flipped bits: the first 8 bytes of the BLAKE2b-256 of all columns, with kind and length.
///
/// SQLite has no checksum of pages. Without a key, it is for accidents, not attacks.
enum RowChecksum {
  static func of(_ columns: [Argument]) -> Int64 {
    var head: [UInt8] = []
    head.reserveCapacity(9 * columns.count)
    func add(_ kind: UInt8, _ number: Int64) {
      head.append(kind)
      withUnsafeBytes(of: number.bigEndian) { head.append(contentsOf: $0) }
    }
    for column in columns {
      switch column {
      case .null: add(0, 0)
      case .integer(let number): add(1, number)
      case .blob(let bytes): add(2, Int64(bytes.count))
      case .text(let text): add(3, Int64(text.utf8.count))
      }
    }
    var hasher = Blake2b.Hasher()
    hasher.update(head)
    for column in columns {
      switch column {
      case .blob(let bytes): hasher.update(bytes)
      case .text(let text): hasher.update(Array(text.utf8))
      case .null, .integer: break
      }
    }
    return hasher.digest256().withUnsafeBytes { $0.loadUnaligned(as: Int64.self) }
  }

  static func of(_ columns: Argument...) -> Argument { .integer(of(columns)) }

  /// Without the row id and the entry in the row.
  static func of(
    _ reference: ChangeSetReference, header: [UInt8], signature: [UInt8]
  ) -> Argument {
    of(
      reference.device.bytes.blob, reference.incarnation.rawValue.signed,
      reference.sequence.signed, reference.digest.bytes.blob, header.blob, signature.blob)
  }

  /// In either table.
  static func of(_ reference: ChangeSetReference, index: UInt32, box: [UInt8]) -> Argument {
    of(reference.digest.bytes.blob, .integer(Int64(index)), box.blob)
  }
}

extension Argument {
  init(_ value: DatabaseValue) {
    switch value.storage {
    case .null: self = .null
    case .int64(let number): self = .integer(number)
    // Not used by any table.
    case .double: self = .null
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob([UInt8](data))
    }
  }

  var number: Int64? { if case .integer(let number) = self { number } else { nil } }

  var bytes: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }

  var string: String? { if case .text(let text) = self { text } else { nil } }
}
