import FoundationEssentials

/// Writes the canonical encoding backwards, so that each length is known when it is needed and the
/// work stays linear in the nesting.
struct ValueEncoder {
  /// Free space, then the written bytes.
  private var storage: [UInt8]
  private var start: Int

  init() {
    storage = Array(repeating: 0, count: 64)
    start = 64
  }

  var bytes: [UInt8] { Array(storage[start...]) }

  mutating func prepend(_ value: PropertyListValue, depth: Int) throws(ValueError) {
    switch value {
    case .bool(let bool):
      prepend(varint: bool ? 1 : 0)
      prepend(byte: ValueTag.bool.rawValue)
    case .integer(let integer):
      prepend(varint: UInt64(bitPattern: (integer << 1) ^ (integer >> 63)))
      prepend(byte: ValueTag.integer.rawValue)
    case .double(let double):
      prepend(fixed64: double.bitPattern)
      prepend(byte: ValueTag.double.rawValue)
    case .string(let string):
      prepend(string, tag: ValueTag.string.rawValue)
    case .date(let date):
      prepend(fixed64: date.timeIntervalSinceReferenceDate.bitPattern)
      prepend(byte: ValueTag.date.rawValue)
    case .data(let data):
      prepend(data)
      prepend(length: data.count, tag: ValueTag.data.rawValue)
    case .array(let values):
      let end = try enter(depth)
      for value in values.reversed() {
        let end = written
        try prepend(value, depth: depth + 1)
        prepend(length: written - end, tag: ValueTag.element)
      }
      prepend(length: written - end, tag: ValueTag.array.rawValue)
    case .dictionary(let members):
      let end = try enter(depth)
      for (key, value) in members.sorted(by: { $1.key.utf8.lexicographicallyPrecedes($0.key.utf8) })
      {
        try prepend(key: key, value, depth: depth + 1)
      }
      prepend(length: written - end, tag: ValueTag.dictionary.rawValue)
    }
  }

  private mutating func prepend(
    key: String, _ value: PropertyListValue, depth: Int
  ) throws(ValueError) {
    let memberEnd = written
    try prepend(value, depth: depth)
    prepend(length: written - memberEnd, tag: ValueTag.memberValue)
    if !key.isEmpty { prepend(key, tag: ValueTag.memberKey) }
    prepend(length: written - memberEnd, tag: ValueTag.element)
  }

  /// Checks the depth; returns the bytes written so far.
  private func enter(_ depth: Int) throws(ValueError) -> Int {
    guard depth < PropertyListValue.maximumDepth else { throw .tooDeep }
    return written
  }

  private var written: Int { storage.count - start }

  private mutating func prepend(_ string: String, tag: UInt8) {
    prepend(string.utf8)
    prepend(length: string.utf8.count, tag: tag)
  }

  private mutating func prepend(length: Int, tag: UInt8) {
    prepend(varint: UInt64(length))
    prepend(byte: tag)
  }

  private mutating func prepend(varint: UInt64) {
    let count = max(1, (70 - varint.leadingZeroBitCount) / 7)
    reserve(count)
    var rest = varint
    for index in start..<start + count {
      storage[index] = UInt8(truncatingIfNeeded: rest & 0x7F) | 0x80
      rest >>= 7
    }
    storage[start + count - 1] &= 0x7F
  }

  private mutating func prepend(fixed64: UInt64) {
    reserve(8)
    for index in 0..<8 {
      storage[start + index] = UInt8(truncatingIfNeeded: fixed64 >> (8 * UInt64(index)))
    }
  }

  private mutating func prepend(byte: UInt8) {
    reserve(1)
    storage[start] = byte
  }

  private mutating func prepend(_ bytes: some Collection<UInt8>) {
    reserve(bytes.count)
    storage.replaceSubrange(start..<start + bytes.count, with: bytes)
  }

  /// Moves `start` back by `count`, and adds space in front if needed.
  private mutating func reserve(_ count: Int) {
    if start < count {
      let more = max(storage.count, count)
      storage.replaceSubrange(0..<start, with: repeatElement(0, count: start + more))
      start += more
    }
    start -= count
  }
}

/// The tags of `Value` fields: field number and wire type in one byte.
enum ValueTag: UInt8 {
  case bool = 0x08
  case integer = 0x10
  case double = 0x19
  case string = 0x22
  case date = 0x29
  case data = 0x32
  case array = 0x3A
  case dictionary = 0x42

  /// `ValueArray.values` and `ValueDictionary.members`.
  static let element: UInt8 = 0x0A
  /// `ValueMember.key`.
  static let memberKey: UInt8 = 0x0A
  /// `ValueMember.value`.
  static let memberValue: UInt8 = 0x12
}
