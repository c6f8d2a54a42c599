import FoundationEssentials
import KithCore
import KithValues

/// A text in GVariant's format, before the types of its parts are known.
///
/// As in GLib, each part says by a pattern which types it may have. A pattern is a type string with
/// these letters besides: `N` any number, `S` any text, `*` any type, and `M` before a type that may
/// also be a maybe of it. The elements of an array must share one type.
struct GVariantNode {
  indirect enum Content {
    case bool(Bool)
    /// As it is written.
    case number(String)
    case string(String)
    case bytestring(Data)
    case variant(GVariantNode)
    /// Nil: `nothing`.
    case maybe(GVariantNode?)
    case array([GVariantNode])
    case tuple([GVariantNode])
    /// A dictionary's entry alone.
    case entry(GVariantNode, GVariantNode)
    case dictionary([(GVariantNode, GVariantNode)])
    /// A value with its declared type.
    case declared(String, GVariantNode)
  }

  private typealias Pattern = [UInt8]
  private static let patternLimit = 2 * GVariantType.limit

  let content: Content
  /// In the text, from 1.
  let column: Int
  private let pattern: Pattern

  /// Throws if no type fits all elements of an array, or all members of a dictionary.
  init(_ content: Content, column: Int) throws(ImportError) {
    let pattern = try Self.pattern(content, column)
    guard pattern.count <= Self.patternLimit else {
      throw .gvariant("the type is too long", column)
    }
    (self.content, self.column, self.pattern) = (content, column, pattern)
  }

  private static func pattern(_ content: Content, _ column: Int) throws(ImportError) -> Pattern {
    switch content {
    case .bool: return Pattern("Mb".utf8)
    case .number(let text): return Pattern((isDouble(text) ? "Md" : "MN").utf8)
    case .string: return Pattern("MS".utf8)
    case .bytestring: return Pattern("May".utf8)
    case .variant: return Pattern("Mv".utf8)
    case .maybe(let node): return Pattern("m".utf8) + (node?.pattern ?? Pattern("*".utf8))
    case .array(let nodes): return Pattern("Ma".utf8) + (try joined(nodes))
    case .tuple(let nodes): return Pattern("M(".utf8) + nodes.flatMap(\.pattern) + Pattern(")".utf8)
    case .entry(let key, let value):
      return Pattern("M{".utf8) + (try key.keyPattern) + value.pattern + Pattern("}".utf8)
    case .dictionary(let members):
      guard let first = members.first else { return Pattern("Ma{**}".utf8) }
      _ = try first.0.keyPattern
      let key = try joined(members.map(\.0)).drop { $0 == UInt8(ascii: "M") }
      // GLib has all values be of the first one's type.
      return Pattern("Ma{".utf8) + key + first.1.pattern + Pattern("}".utf8)
    case .declared(let type, _): return Pattern(type.utf8)
    }
  }

  private var keyPattern: Pattern {
    get throws(ImportError) {
      let key = Pattern(pattern.drop { $0 == UInt8(ascii: "M") })
      guard key.count == 1, let letter = key.first, "bynqiuxthdsogNS".utf8.contains(letter) else {
        throw error("a dictionary's key has a simple type")
      }
      return key
    }
  }

  private static func isDouble(_ text: String) -> Bool {
    text.contains(".") || text.contains("inf") || text.contains("nan")
      || text.contains("e") && !text.hasPrefix("0x")
  }

  /// The pattern of all types that each of the nodes may have.
  private static func joined(_ nodes: [GVariantNode]) throws(ImportError) -> Pattern {
    guard var all = nodes.first?.pattern else { return Pattern("*".utf8) }
    for node in nodes.dropFirst() where node.pattern != all {
      guard let both = join(all, node.pattern) else {
        throw node.error("the value has another type than those before it")
      }
      all = both
    }
    return all
  }

  /// Returns the pattern of the types that both have; nil if there are none.
  private static func join(_ left: Pattern, _ right: Pattern) -> Pattern? {
    var (one, other, both) = (left[...], right[...], Pattern())
    while let first = one.first, let second = other.first {
      if first == second {
        both.append(first)
        (one, other) = (one.dropFirst(), other.dropFirst())
        continue
      }
      guard specialize(&one, &other, &both) || specialize(&other, &one, &both) else { return nil }
    }
    return one.isEmpty && other.isEmpty ? both : nil
  }

  /// Advances over a letter of the first pattern that permits several types, and appends what both
  /// permit. False: the letter is none of these, or does not permit the second one's type.
  private static func specialize(
    _ general: inout ArraySlice<UInt8>, _ special: inout ArraySlice<UInt8>, _ both: inout Pattern
  ) -> Bool {
    guard let letter = general.first, let second = special.first else { return false }
    switch (letter, second) {
    case (UInt8(ascii: "*"), _) where !")}".utf8.contains(second):
      let rest = rest(after: special)
      both += special[..<rest.startIndex]
      (general, special) = (general.dropFirst(), rest)
    case (UInt8(ascii: "M"), UInt8(ascii: "m")):
      both.append(second)
      special.removeFirst()
    case (UInt8(ascii: "M"), _) where second != UInt8(ascii: "*"): general.removeFirst()
    case (UInt8(ascii: "N"), _) where "ynqiuxthd".utf8.contains(second),
      (UInt8(ascii: "S"), _) where "sog".utf8.contains(second):
      both.append(second)
      (general, special) = (general.dropFirst(), special.dropFirst())
    default: return false
    }
    return true
  }

  /// The rest after the first type of a pattern, which has one.
  private static func rest(after pattern: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var (rest, open) = (pattern, 0)
    while let letter = rest.popFirst() {
      switch letter {
      case UInt8(ascii: "("), UInt8(ascii: "{"): open += 1
      case UInt8(ascii: ")"), UInt8(ascii: "}"): open -= 1
      case UInt8(ascii: "M"), UInt8(ascii: "m"), UInt8(ascii: "a"): continue
      default: break
      }
      if open == 0 { break }
    }
    return rest
  }

  /// The type that GLib chooses: no maybe, `s` for texts, `i` for integers.
  private var type: String {
    get throws(ImportError) {
      guard !pattern.contains(UInt8(ascii: "*")) else {
        throw error("its type is unknown; write it before the value, such as @as []")
      }
      let letters = pattern.filter { $0 != UInt8(ascii: "M") }
      return String(decoding: letters, as: UTF8.self).replacing("S", with: "s")
        .replacing("N", with: "i")
    }
  }

  func error(_ reason: String, isText: Bool = false) -> ImportError {
    .gvariant(reason, column, isText: isText)
  }
}

// MARK: Values

extension GVariantNode {
  /// A value and its form (``GVariantText``).
  typealias Read = (value: PropertyListValue, form: PropertyListValue)

  /// Throws if the value does not have the type that the text says.
  func read() throws(ImportError) -> Read { try read(as: try type) }

  private func read(as type: String) throws(ImportError) -> Read {
    if let some = GVariantType.element(type, of: "m") { return try maybe(type, of: some) }
    switch (content, type) {
    case (.bool(let bool), "b"): return (.bool(bool), .string(type))
    case (.number(let text), _): return (try number(text, as: type), .string(type))
    case (.string(let text), "s"): return (.string(text), .string(type))
    case (.string(let text), "o") where GVariantText.isObjectPath(text):
      return (.string(text), .string(type))
    case (.string(let text), "g") where GVariantType.split(text) != nil && !text.contains("^"):
      return (.string(text), .string(type))
    case (.bytestring(let data), "ay"): return (.data(data), "^ay")
    case (.variant(let node), "v"):
      let inner = try node.read()
      let isUsual = inner.form == .string(GVariantText.defaultType(inner.value))
      return (inner.value, isUsual ? "v" : ["v", inner.form])
    case (.tuple(let nodes), _) where type.hasPrefix("("):
      return try members(nodes, type) { "(\($0))" }
    case (.entry(let key, let value), _) where type.hasPrefix("{"):
      return try members([key, value], type) { "{\($0)}" }
    case (.array(let nodes), _) where type.hasPrefix("a"):
      let entries = nodes.compactMap(\.entry)
      return type.hasPrefix("a{") && entries.count == nodes.count
        ? try dictionary(entries, type) : try array(nodes, type)
    case (.dictionary(let members), _): return try dictionary(members, type)
    case (.declared(let declared, let node), _) where declared == type:
      return try node.read(as: type)
    default: throw error("the value is not of the type `\(type)`")
    }
  }

  private func maybe(_ type: String, of some: String) throws(ImportError) -> Read {
    let inner: Read
    switch content {
    case .declared(let declared, let node):
      guard declared == type else { throw error("the value is not of the type `\(type)`") }
      return try node.read(as: type)
    case .maybe(nil):
      guard GVariantText.canBeNothing(some) else {
        throw error("`nothing` of the type \(type) has no counterpart among values", isText: true)
      }
      return (.array([]), .string(type))
    case .maybe(let node?): inner = try node.read(as: some)
    default: inner = try read(as: some)
    }
    let form: PropertyListValue =
      if case .string(let content) = inner.form { .string("m" + content) } else {
        [.string("m" + inner.form.typeString), inner.form]
      }
    return (inner.value, form)
  }

  private func number(_ text: String, as type: String) throws(ImportError) -> PropertyListValue {
    if type == "d" {
      guard let double = Double(withinRange: text) else {
        throw error("`\(text)` is no number within the range of a double")
      }
      guard double.keeps(text) else {
        throw error(NotAValue.rounded(text, to: double).reason, isText: true)
      }
      return .double(double)
    }
    guard let (name, range) = type.first.flatMap({ GVariantType.integers[$0] }), type.count == 1
    else { throw error("the value is not of the type `\(type)`") }
    let unsigned = text.first == "-" || text.first == "+" ? text.dropFirst() : text[...]
    // As in C: 0x starts a hexadecimal number, 0 an octal one.
    let (digits, radix): (Substring, Int) =
      if unsigned.hasPrefix("0x") || unsigned.hasPrefix("0X") {
        (unsigned.dropFirst(2), 16)
      } else if unsigned.count > 1, unsigned.first == "0" {
        (unsigned.dropFirst(), 8)
      } else {
        (unsigned, 10)
      }
    guard !"+-".contains(digits.first ?? "-"), let magnitude = UInt64(digits, radix: radix) else {
      throw error("`\(text)` is no integer of 64 bits")
    }
    let isNegative = text.first == "-" && magnitude > 0
    guard let integer = Int64((isNegative ? "-" : "") + String(magnitude)), range.contains(integer)
    else {
      let isText = type == "t" && !isNegative
      throw error(
        "a \(name) must be within \(range.lowerBound) to \(range.upperBound)", isText: isText)
    }
    return .integer(integer)
  }

  private func array(_ nodes: [GVariantNode], _ type: String) throws(ImportError) -> Read {
    guard let element = GVariantType.element(type, of: "a") else { throw error("no array") }
    var parts: [Read] = []
    for node in nodes { parts.append(try node.read(as: element)) }
    guard element != "y" else {
      let bytes = parts.compactMap { part in
        if case .integer(let byte) = part.value { UInt8(exactly: byte) } else { nil }
      }
      return (.data(Data(bytes)), .string(type))
    }
    let shared = Self.shared(parts.map(\.form), type: element)
    let form: PropertyListValue =
      shared.isWhole
      ? .string("a" + shared.type)
      : .array([.string("a" + shared.type)] + parts.map(\.form))
    return (.array(parts.map(\.value)), form)
  }

  /// Reads the members of a tuple or an entry.
  private func members(
    _ nodes: [GVariantNode], _ type: String, _ joined: (String) -> String
  ) throws(ImportError) -> Read {
    guard let types = GVariantType.members(type), types.count == nodes.count else {
      throw error("the value is not of the type `\(type)`")
    }
    var parts: [Read] = []
    for (node, type) in zip(nodes, types) { parts.append(try node.read(as: type)) }
    let type = PropertyListValue.string(joined(parts.map(\.form.typeString).joined()))
    let isWhole = parts.allSatisfy(\.form.isTypeString)
    return (.array(parts.map(\.value)), isWhole ? type : .array([type] + parts.map(\.form)))
  }

  private func dictionary(
    _ members: [(GVariantNode, GVariantNode)], _ type: String
  ) throws(ImportError) -> Read {
    guard let (keyType, valueType) = GVariantType.entry(type) else {
      throw error("the value is not of the type `\(type)`")
    }
    var values: [String: PropertyListValue] = [:]
    var forms: [String: PropertyListValue] = [:]
    for (key, node) in members {
      let name = ValueText.text(try key.read(as: keyType).value)
      let read = try node.read(as: valueType)
      guard values.updateValue(read.value, forKey: name) == nil else {
        throw key.error(
          "the key `\(name)` occurs twice in one dictionary, or an equivalent one does",
          isText: true)
      }
      forms[name] = read.form
    }
    let shared = Self.shared(
      forms.sorted { Key($0.key) < Key($1.key) }.map(\.value), type: valueType)
    let whole = PropertyListValue.string("a{\(keyType)\(shared.type)}")
    return (.dictionary(values), shared.isWhole ? whole : [whole, .dictionary(forms)])
  }

  /// The type string for all of some forms, and whether it says all that they do. `type`: as GLib
  /// has it.
  private static func shared(
    _ forms: [PropertyListValue], type: String
  ) -> (type: String, isWhole: Bool) {
    let types = forms.map(\.typeString)
    let isWhole = Set(types).count <= 1 && forms.allSatisfy(\.isTypeString)
    return (types.first { $0.contains("^") } ?? type, isWhole)
  }

  private var entry: (GVariantNode, GVariantNode)? {
    switch content {
    case .entry(let key, let value): (key, value)
    case .declared(_, let node): node.entry
    default: nil
    }
  }
}

extension PropertyListValue {
  /// The type string of a form.
  fileprivate var typeString: String {
    switch self {
    case .string(let type): type
    case .array(let forms): forms.first?.typeString ?? ""
    default: ""
    }
  }

  fileprivate var isTypeString: Bool { if case .string = self { true } else { false } }
}
