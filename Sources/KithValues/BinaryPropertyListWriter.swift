internal import FoundationEssentials
package import KithCore

/// Writes a binary property list, which ``BinaryPropertyListReader`` and Foundation read: one object for
/// each value and key, members in order of their keys' bytes.
package struct BinaryPropertyListWriter {
  private var bytes: [UInt8] = Array("bplist00".utf8)
  private var offsets: [Int] = []

  package init() {}

  /// - Complexity: O(*n* log *n*) in the size of the value.
  package consuming func bytes(of value: PropertyListValue) -> [UInt8] {
    var writer = self
    let references = Self.referenceBytes(Self.objects(value))
    let root = writer.write(value, references)
    return writer.finished(root, references)
  }

  /// As of a dictionary, whose keys may be canonically equivalent.
  package consuming func bytes(of members: [(key: Key, value: PropertyListValue)]) -> [UInt8] {
    var writer = self
    let references = Self.referenceBytes(
      members.reduce(1) { $0 + 1 + Self.objects($1.value) })
    let root = writer.write(members, references)
    return writer.finished(root, references)
  }

  private static func objects(_ value: PropertyListValue) -> Int {
    switch value {
    case .array(let elements): elements.reduce(1) { $0 + objects($1) }
    case .dictionary(let members): members.reduce(1) { $0 + 1 + objects($1.value) }
    default: 1
    }
  }

  private static func referenceBytes(_ count: Int) -> Int {
    count <= 1 << 8 ? 1 : count <= 1 << 16 ? 2 : 4
  }

  private mutating func write(_ value: PropertyListValue, _ references: Int) -> Int {
    switch value {
    case .bool(let bool): return object([bool ? 0x09 : 0x08])
    case .integer(let integer): return object(Self.integer(integer))
    case .double(let double): return object([0x23] + Self.big(double.bitPattern, 8))
    case .date(let date):
      return object([0x33] + Self.big(date.timeIntervalSinceReferenceDate.bitPattern, 8))
    case .string(let text): return object(Self.text(text))
    case .data(let data): return object(Self.marker(0x40, data.count) + data)
    case .array(let elements):
      let positions = elements.map { write($0, references) }
      return object(
        Self.marker(0xA0, positions.count) + positions.flatMap { Self.big(UInt64($0), references) })
    case .dictionary(let members):
      return write(
        members.map { (Key($0.key), $0.value) }.sorted { $0.key < $1.key }, references)
    }
  }

  private mutating func write(
    _ members: [(key: Key, value: PropertyListValue)], _ references: Int
  ) -> Int {
    let keys = members.map { object(Self.text($0.key.text)) }
    let values = members.map { write($0.value, references) }
    return object(
      Self.marker(0xD0, members.count)
        + (keys + values).flatMap { Self.big(UInt64($0), references) })
  }

  /// Returns the object's number.
  private mutating func object(_ content: [UInt8]) -> Int {
    offsets.append(bytes.count)
    bytes += content
    return offsets.count - 1
  }

  private consuming func finished(_ root: Int, _ references: Int) -> [UInt8] {
    let table = bytes.count
    let width = table < 1 << 8 ? 1 : table < 1 << 16 ? 2 : table < 1 << 32 ? 4 : 8
    var all = bytes
    for offset in offsets { all += Self.big(UInt64(offset), width) }
    all += [0, 0, 0, 0, 0, 0, UInt8(width), UInt8(references)]
    for number in [offsets.count, root, table] { all += Self.big(UInt64(number), 8) }
    return all
  }

  private static func big(_ number: UInt64, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
  }

  private static func marker(_ kind: UInt8, _ count: Int) -> [UInt8] {
    count < 15 ? [kind | UInt8(count)] : [kind | 0xF] + integer(Int64(count))
  }

  /// Encodes an integer in 1, 2 or 4 bytes without a sign, or in 8 with one.
  private static func integer(_ integer: Int64) -> [UInt8] {
    let power: UInt8 =
      switch integer {
      case 0...0xFF: 0
      case 0...0xFFFF: 1
      case 0...0xFFFF_FFFF: 2
      default: 3
      }
    return [0x10 | power] + big(UInt64(bitPattern: integer), 1 << Int(power))
  }

  private static func text(_ text: String) -> [UInt8] {
    let characters = text.utf8
    if characters.allSatisfy({ $0 < 0x80 }) {
      return marker(0x50, characters.count) + characters
    }
    return marker(0x60, text.utf16.count) + text.utf16.flatMap { big(UInt64($0), 2) }
  }
}
