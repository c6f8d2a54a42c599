/// Counts a message's repeated fields without decoding it: a decoded element takes many times its
/// two bytes.
struct MessageOutline {
  struct Field {
    let number: UInt64
    /// The maximum in the whole message, over all parents.
    var limit = Int.max
    /// The size of the shortest valid one, in bytes.
    var fewestBytes = 0
    /// Fields inside it, if it is a message.
    var fields: [Field] = []
  }

  static let session = MessageOutline([
    Field(
      number: 1,
      fields: [
        Field(
          number: 1, limit: Limits.recordsPerMessage,
          fields: [
            Field(
              number: 2, limit: Limits.recordsPerMessage * MembershipLimits.signatures,
              fewestBytes: 100)
          ])
      ]),
    Field(
      number: 2,
      fields: [
        Field(
          number: 5, limit: Limits.stores,
          fields: [Field(number: 2, limit: Limits.elementsPerMessage, fewestBytes: 34)]),
        Field(
          number: 8, limit: Limits.wordsPerMessage,
          fields: [Field(number: 2, limit: Limits.wordsPerMessage, fewestBytes: 64)]),
      ]),
    Field(
      number: 3,
      fields: [
        Field(
          number: 3, limit: Limits.changeSetsPerMessage,
          fields: [Field(number: 3, limit: Limits.elementsPerMessage)]),
        Field(number: 4, limit: Limits.chainsPerStore, fewestBytes: 34),
      ]),
    Field(
      number: 4,
      fields: [
        Field(
          number: 1, limit: MembershipLimits.records,
          fields: [Field(number: 2, limit: Limits.elementsPerMessage)])
      ]),
  ])

  static let header = MessageOutline([
    Field(
      number: 9, limit: Limits.entriesPerChangeSet, fewestBytes: 32)
  ])

  static let wordContent = MessageOutline([
    Field(
      number: 1, limit: Limits.stores,
      fields: [Field(number: 3, limit: Limits.wordEntries, fewestBytes: 34)])
  ])

  /// An inviter's answer.
  static let joinReply = MessageOutline([
    Field(
      number: 2, limit: MembershipLimits.records,
      fields: [Field(number: 2, limit: Limits.elementsPerMessage, fewestBytes: 100)]),
    Field(
      number: 3, limit: MembershipLimits.records,
      fields: [Field(number: 2, limit: Limits.elementsPerMessage)]),
  ])

  /// Each field precedes its inner fields.
  private var fields: [(field: Field, inner: Range<Int>)] = []
  private let outermost: Range<Int>

  init(_ outermost: [Field]) {
    self.outermost = 0..<outermost.count
    fields = outermost.map { ($0, 0..<0) }
    var next = 0
    while next < fields.count {
      let inner = fields[next].field.fields
      fields[next].inner = fields.count..<fields.count + inner.count
      fields += inner.map { ($0, 0..<0) }
      next += 1
    }
  }

  /// Whether bytes are well-formed fields, and none occurs too often; unknown fields are skipped.
  /// O(*n*), in constant memory.
  func permits(_ bytes: [UInt8]) -> Bool {
    var counts = [Int](repeating: 0, count: fields.count)
    return bytes.withUnsafeBytes { permits($0, outermost, &counts) }
  }

  private func permits(
    _ bytes: UnsafeRawBufferPointer, _ known: Range<Int>, _ counts: inout [Int]
  ) -> Bool {
    var reader = Reader(bytes: bytes)
    while !reader.isAtEnd {
      guard let tag = reader.varint(), tag >> 3 > 0, tag <= UInt32.max else { return false }
      switch tag & 7 {
      case 0: guard reader.varint() != nil else { return false }
      case 1: guard reader.read(8) != nil else { return false }
      case 2:
        guard let length = reader.varint(), let inside = reader.read(length) else { return false }
        guard let index = known.first(where: { fields[$0].field.number == tag >> 3 }) else {
          continue
        }
        let (field, inner) = fields[index]
        counts[index] += 1
        guard counts[index] <= field.limit, inside.count >= field.fewestBytes,
          inner.isEmpty || permits(inside, inner, &counts)
        else { return false }
      // Group markers: the fields between them are checked as if outside a group.
      case 3, 4: continue
      case 5: guard reader.read(4) != nil else { return false }
      default: return false
      }
    }
    return true
  }

  private struct Reader {
    let bytes: UnsafeRawBufferPointer
    var position = 0

    var isAtEnd: Bool { position == bytes.count }

    /// Nil if it ends too early or has more than 64 bits.
    mutating func varint() -> UInt64? {
      var value: UInt64 = 0
      for shift in stride(from: 0 as UInt64, to: 64, by: 7) {
        guard position < bytes.count else { return nil }
        let byte = bytes[position]
        position += 1
        value |= UInt64(byte & 0x7f) << shift
        if byte < 0x80 { return value }
      }
      return nil
    }

    mutating func read(_ count: UInt64) -> UnsafeRawBufferPointer? {
      guard count <= UInt64(bytes.count - position) else { return nil }
      defer { position += Int(count) }
      return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(count)])
    }
  }
}
