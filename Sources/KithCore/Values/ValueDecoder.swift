import FoundationEssentials

/// Reads only the canonical encoding, and is safe on any bytes.
///
/// Reads stop at their message's end, a length allocates only once its bytes exist, and recursion
/// ends at ``PropertyListValue/maximumDepth``.
struct ValueDecoder {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  mutating func decode() throws(ValueError) -> PropertyListValue {
    try value(end: bytes.count, depth: 0)
  }

  private mutating func value(end: Int, depth: Int) throws(ValueError) -> PropertyListValue {
    guard position < end else { throw .malformed }  // no kind
    let tag = bytes[position]
    guard let kind = ValueTag(rawValue: tag) else { throw unexpected(tag) }
    position += 1
    let value = try value(kind, end: end, depth: depth)
    guard position == end else { throw .notCanonical }  // a second kind, or an unknown field
    return value
  }

  private mutating func value(
    _ kind: ValueTag, end: Int, depth: Int
  ) throws(ValueError) -> PropertyListValue {
    switch kind {
    case .bool:
      let raw = try varint(end: end)
      guard raw <= 1 else { throw .notCanonical }
      return .bool(raw == 1)
    case .integer:
      let raw = try varint(end: end)
      return .integer(Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1))
    case .double:
      return .double(Double(bitPattern: try fixed64(end: end)))
    case .string:
      return .string(try string(in: try range(end: end)))
    case .date:
      let seconds = Double(bitPattern: try fixed64(end: end))
      return .date(Date(timeIntervalSinceReferenceDate: seconds))
    case .data:
      return .data(Data(bytes[try range(end: end)]))
    case .array:
      return .array(try array(end: try enter(end: end, depth: depth), depth: depth + 1))
    case .dictionary:
      return .dictionary(try dictionary(end: try enter(end: end, depth: depth), depth: depth + 1))
    }
  }

  /// Checks the depth; returns where the container ends.
  private mutating func enter(end: Int, depth: Int) throws(ValueError) -> Int {
    guard depth < PropertyListValue.maximumDepth else { throw .tooDeep }
    return try length(end: end)
  }

  private mutating func array(end: Int, depth: Int) throws(ValueError) -> [PropertyListValue] {
    var values: [PropertyListValue] = []
    while position < end {
      try expect(ValueTag.element, end: end)
      let elementEnd = try length(end: end)
      values.append(try value(end: elementEnd, depth: depth))
    }
    return values
  }

  private mutating func dictionary(
    end: Int, depth: Int
  ) throws(ValueError) -> [String: PropertyListValue] {
    var members: [String: PropertyListValue] = [:]
    var previous: Range<Int>?
    while position < end {
      try expect(ValueTag.element, end: end)
      let memberEnd = try length(end: end)
      let (key, keyRange) = try key(end: memberEnd)
      if let previous {
        guard bytes[previous].lexicographicallyPrecedes(bytes[keyRange]) else {
          throw .notCanonical
        }
      }
      previous = keyRange
      try expect(ValueTag.memberValue, end: memberEnd)
      let valueEnd = try length(end: memberEnd)
      let value = try value(end: valueEnd, depth: depth)
      guard position == memberEnd else { throw .notCanonical }
      guard members.updateValue(value, forKey: key) == nil else { throw .malformed }
    }
    return members
  }

  /// Reads a member's key, which is omitted if it is empty.
  private mutating func key(end: Int) throws(ValueError) -> (String, Range<Int>) {
    guard position < end else { throw .malformed }  // no value
    guard bytes[position] == ValueTag.memberKey else { return ("", position..<position) }
    position += 1
    let range = try range(end: end)
    guard !range.isEmpty else { throw .notCanonical }
    return (try string(in: range), range)
  }

  private mutating func expect(_ tag: UInt8, end: Int) throws(ValueError) {
    guard position < end else { throw .malformed }
    guard bytes[position] == tag else { throw unexpected(bytes[position]) }
    position += 1
  }

  /// Malformed if a known field has another wire type, otherwise not canonical.
  private func unexpected(_ tag: UInt8) -> ValueError {
    let field = tag >> 3
    let wireType = tag & 7
    let isKnown = (1...8).contains(field)
    return isKnown || field == 0 || wireType > 5 ? .malformed : .notCanonical
  }

  private func string(in range: Range<Int>) throws(ValueError) -> String {
    guard let string = String(validating: bytes[range], as: UTF8.self) else { throw .malformed }
    return string
  }

  private mutating func range(end: Int) throws(ValueError) -> Range<Int> {
    let rangeEnd = try length(end: end)
    defer { position = rangeEnd }
    return position..<rangeEnd
  }

  /// Reads a length; returns where its bytes end.
  private mutating func length(end: Int) throws(ValueError) -> Int {
    let length = try varint(end: end)
    guard length <= UInt64(end - position) else { throw .malformed }
    return position + Int(length)
  }

  private mutating func varint(end: Int) throws(ValueError) -> UInt64 {
    var result: UInt64 = 0
    var shift: UInt64 = 0
    while position < end {
      let byte = bytes[position]
      position += 1
      guard shift < 63 || byte <= 1 else { throw .malformed }  // more than 64 bits
      result |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else { throw .notCanonical }
        return result
      }
      shift += 7
    }
    throw .malformed
  }

  private mutating func fixed64(end: Int) throws(ValueError) -> UInt64 {
    guard end - position >= 8 else { throw .malformed }
    var result: UInt64 = 0
    for index in (0..<8).reversed() {
      result = result << 8 | UInt64(bytes[position + index])
    }
    position += 8
    return result
  }
}
