import KithCrypto
import Testing

@testable import KithCore

/// kith.proto beside what repeats it by hand.
@Suite struct SchemaTests {
  private func schema() throws -> [String: [UInt64: ProtoField]] {
    protoMessages(try ProtocolPages.text(of: "Sources/KithCore/Wire/kith.proto"))
  }

  @Test func `the pages print the schema, but for what never travels`() throws {
    let pages = protoMessages(try ProtocolPages().markdown)
    let travels = try schema().filter { !$0.key.hasPrefix("Stored") }
    #expect(travels.count > 30)
    for (name, fields) in travels { #expect(pages[name] == fields, "\(name)") }
    #expect(Set(pages.keys) == Set(travels.keys))
  }

  @Test func `section 2 prints the limits that bind every device`() throws {
    let page = try ProtocolPages.text(of: "Docs/Protocol.md")
    let section = try #require(
      page.components(separatedBy: "\n## 2. ").last?.components(separatedBy: "\n## 3. ").first)
    let numbers = Set(section.matches(of: /\d[\d,]*\d/).map { String($0.output) })
    for limit in [
      Limits.messageBytes, Limits.recordsMessageLimitBytes, Limits.recordsPerMessage,
      MembershipLimits.recordBytes, MembershipLimits.bodyBytes, MembershipLimits.signatures,
      MembershipLimits.parents, MembershipLimits.recipients, MembershipLimits.keeps, Limits.stores,
      Limits.chainsPerStore, Limits.elementsPerMessage, Limits.changeSetsPerMessage,
      Limits.entriesPerChangeSet, Limits.changeSetBoxBytes, MembershipLimits.records,
      Limits.addressBytes, Policy.maximum.totalBytes, Policy.maximum.keys, Policy.maximum.keyBytes,
      Policy.maximum.valueBytes,
    ] {
      let digits = Array(String(limit))
      let grouped = digits.enumerated().map { place, digit in
        String(digit) + (place + 1 < digits.count && (digits.count - place) % 3 == 1 ? "," : "")
      }.joined()
      #expect(numbers.contains(grouped), "the page lacks \(grouped)")
    }
  }

  /// Messages that are decoded from so few bytes that their elements need no count of their own.
  private static let small: Set = [
    "Offer", "RecordBody", "Invitation", "JoinRequest", "Value",
    "StoredDraft", "StoredRefusal",
  ]

  /// Every repeated field under a message, as the numbers that lead to it.
  private func repeated(
    under message: String, in schema: [String: [UInt64: ProtoField]], path: [UInt64] = []
  ) -> [[UInt64]] {
    (schema[message] ?? [:]).sorted { $0.key < $1.key }.flatMap { number, field in
      (field.isRepeated ? [path + [number]] : [])
        + repeated(under: field.type, in: schema, path: path + [number])
    }
  }

  private func varint(_ value: UInt64) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7f) | 0x80] + varint(value >> 7)
  }

  private func field(_ number: UInt64, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(UInt64(bytes.count)) + bytes
  }

  /// A repeated field that no outline knows would be decoded however often it stands.
  @Test func `every repeated field of a message is counted before it is decoded`() throws {
    let schema = try schema()
    // An unknown field: an element of this is long enough for any.
    let element = field(4_000, [UInt8](repeating: 0, count: 150))
    for (root, outline): (String, MessageOutline) in [
      ("Message", .session), ("ChangeSetHeader", .header), ("JoinReply", .joinReply),
      ("WordContent", .wordContent), ("ObjectBody", .objectBody),
    ] {
      let paths = repeated(under: root, in: schema)
      #expect(!paths.isEmpty)
      for path in paths {
        func message(_ count: Int) -> [UInt8] {
          let one = field(path[path.count - 1], element)
          let elements = (0..<count).flatMap { _ in one }
          return path.dropLast().reversed().reduce(elements) { field($1, $0) }
        }
        #expect(outline.permits(message(1)), "one \(path) of \(root)")
        #expect(!outline.permits(message(Limits.elementsPerMessage + 1)), "many \(path) of \(root)")
      }
    }
  }

  @Test func `every other message with repeated fields is small`() throws {
    let schema = try schema()
    var known = Self.small
    for root in Self.small.union([
      "Message", "ChangeSetHeader", "JoinReply", "WordContent", "ObjectBody",
    ]) {
      var new: Set = [root]
      while let next = new.popFirst() {
        known.insert(next)
        new.formUnion((schema[next] ?? [:]).values.map(\.type).filter { !known.contains($0) })
      }
    }
    for (name, fields) in schema where fields.values.contains(where: \.isRepeated) {
      #expect(known.contains(name), "\(name) is decoded, and nothing bounds its elements")
    }
  }
}
