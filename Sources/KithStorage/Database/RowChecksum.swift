import GRDB
import KithCrypto

/// Tells a row that was written from one in which a bit has flipped since: SQLite has no checksum of
/// its pages. The first 8 bytes of the BLAKE2b-256 of all columns, each with its kind and length. It
/// is for accidents: it has no key, and tells nothing that the row does not.
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

  /// Of a change set's row, without its place and the entry in it.
  static func of(
    _ reference: ChangeSetName, header: [UInt8], signature: [UInt8]
  ) -> Argument {
    of(
      .blob(reference.device), reference.incarnation, reference.sequence, .blob(reference.digest),
      .blob(header), .blob(signature))
  }

  /// Of an entry, wherever it lies.
  static func of(digest: [UInt8], index: UInt32, box: [UInt8]) -> Argument {
    of(.blob(digest), .integer(Int64(index)), .blob(box))
  }
}

/// The columns that name a change set.
struct ChangeSetName {
  var device: [UInt8]
  var incarnation: Argument
  var sequence: Argument
  var digest: [UInt8]
}

extension Argument {
  /// What a column holds.
  init(_ value: DatabaseValue) {
    switch value.storage {
    case .null: self = .null
    case .int64(let number): self = .integer(number)
    // No table has a column of this kind.
    case .double: self = .null
    case .string(let text): self = .text(text)
    case .blob(let data): self = .blob([UInt8](data))
    }
  }

  /// The number, if it is one.
  var number: Int64? { if case .integer(let number) = self { number } else { nil } }

  /// The bytes, if it is a blob.
  var bytes: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }

  /// The text, if it is one.
  var string: String? { if case .text(let text) = self { text } else { nil } }
}
