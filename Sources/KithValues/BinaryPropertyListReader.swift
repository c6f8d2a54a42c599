package import FoundationEssentials
import KithTerminal

/// Reads a binary property list (CFBinaryPList.c of swift-corelibs-foundation).
///
/// Its objects may be shared: 200 bytes can stand for more arrays than fit in memory. So the list is
/// measured first, in a time linear in the file.
package struct BinaryPropertyListReader {
  /// The most expanded values, keys included.
  static let limitValues = 1 << 20
  /// The most expanded bytes of text and data.
  static let limitBytes = 64 << 20

  /// The expanded size of an object.
  private struct Size {
    var values = 1
    var bytes = 0
    var depth = 0
  }

  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let offsetTable: Int
  private let root: Int
  private var sizes: [Size?]
  /// References read: bounded, because the lists of objects may overlap.
  private var references = 0

  private static let damaged = PropertyListError("the binary property list is damaged or cut off")
  private static let tooLarge = PropertyListError(
    "the binary property list unfolds to more than \(Format.count(limitValues)) values or "
      + "\(Format.bytes(limitBytes))")
  private static let tooDeep = PropertyListError(
    "the property list is nested deeper than \(PropertyListNode.maximumDepth)")

  package init(_ data: Data) throws(PropertyListError) {
    bytes = Array(data)
    // The last 32 bytes: 6 unused, two sizes, the number of objects, the root, the table.
    let trailer = bytes.count - 32
    guard trailer >= 8 else { throw Self.damaged }
    // Others have other objects: bplist15 and bplist16.
    guard bytes.starts(with: "bplist0".utf8) else {
      throw PropertyListError(
        "the binary property list is of a version that is not read; convert it, for example with: "
          + "plutil -convert binary1")
    }
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.number(bytes, trailer + 8, 8),
      let root = Self.number(bytes, trailer + 16, 8),
      let table = Self.number(bytes, trailer + 24, 8), table < trailer,
      count > 0, count <= (trailer - table) / offsetSize
    else { throw Self.damaged }
    self.root = root
    offsetTable = table
    sizes = Array(repeating: nil, count: count)
  }

  package mutating func read() throws(PropertyListError) -> PropertyListNode {
    _ = try size(of: root, depth: 0)
    return try node(root)
  }

  // MARK: Measuring

  private mutating func size(of object: Int, depth: Int) throws(PropertyListError) -> Size {
    guard sizes.indices.contains(object) else { throw Self.damaged }
    if let known = sizes[object] { return known }
    // A list that contains itself also ends here.
    guard depth <= PropertyListNode.maximumDepth else { throw Self.tooDeep }
    let size = try measure(object, depth)
    sizes[object] = size
    return size
  }

  private mutating func measure(_ object: Int, _ depth: Int) throws(PropertyListError) -> Size {
    let offset = try offset(of: object)
    switch bytes[offset] >> 4 {
    case 0x4, 0x5: return Size(bytes: try count(at: offset).count)
    case 0x6: return Size(bytes: try count(at: offset).count * 2)
    case 0xA: return try container(at: offset, factor: 1, depth)
    case 0xD: return try container(at: offset, factor: 2, depth)
    default: return Size()
    }
  }

  private mutating func container(
    at offset: Int, factor: Int, _ depth: Int
  ) throws(PropertyListError) -> Size {
    let objects = try objects(at: offset, factor: factor)
    references += objects.count
    var sum = Size()
    guard references <= Self.limitValues * 2 else { throw Self.tooLarge }
    for object in objects {
      let size = try size(of: object, depth: depth + 1)
      sum.values += size.values
      sum.bytes += size.bytes
      sum.depth = max(sum.depth, size.depth)
      guard sum.values <= Self.limitValues, sum.bytes <= Self.limitBytes else {
        throw Self.tooLarge
      }
    }
    sum.depth += 1
    guard sum.depth <= PropertyListNode.maximumDepth else { throw Self.tooDeep }
    return sum
  }

  // MARK: Objects

  private func offset(of object: Int) throws(PropertyListError) -> Int {
    guard
      let offset = Self.number(bytes, offsetTable + object * offsetSize, offsetSize),
      offset >= 8, offset < offsetTable
    else { throw Self.damaged }
    return offset
  }

  /// The elements of an array, or the keys and then the values of a dictionary.
  private func objects(at offset: Int, factor: Int) throws(PropertyListError) -> [Int] {
    let (count, start) = try count(at: offset)
    let total = count * factor
    guard count <= bytes.count, start + total * referenceSize <= offsetTable else {
      throw Self.damaged
    }
    // Before memory is taken for them.
    guard references + total <= Self.limitValues * 2 else { throw Self.tooLarge }
    var objects: [Int] = []
    objects.reserveCapacity(total)
    for index in 0..<total {
      guard let object = Self.number(bytes, start + index * referenceSize, referenceSize) else {
        throw Self.damaged
      }
      objects.append(object)
    }
    return objects
  }

  /// Returns the bytes, characters or elements of an object, and their position.
  private func count(at offset: Int) throws(PropertyListError) -> (count: Int, start: Int) {
    let short = Int(bytes[offset] & 0xF)
    if short != 0xF { return (short, offset + 1) }
    guard offset + 1 < offsetTable, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0xF <= 3 else {
      throw Self.damaged
    }
    let width = 1 << Int(bytes[offset + 1] & 0xF)
    guard let count = Self.number(bytes, offset + 2, width), count <= bytes.count else {
      throw Self.damaged
    }
    return (count, offset + 2 + width)
  }

  /// The bytes of an object.
  private func content(_ start: Int, _ count: Int) throws(PropertyListError) -> ArraySlice<UInt8> {
    guard start + count <= offsetTable else { throw Self.damaged }
    return bytes[start..<start + count]
  }

  /// Only of measured objects, which end the recursion.
  private func node(_ object: Int) throws(PropertyListError) -> PropertyListNode {
    let offset = try offset(of: object)
    let marker = bytes[offset]
    switch (marker >> 4, marker & 0xF) {
    case (0x0, 0x8): return .value(.bool(false))
    case (0x0, 0x9): return .value(.bool(true))
    case (0x1, let power) where power <= 4: return try integer(offset + 1, 1 << Int(power))
    case (0x2, 2):
      let bits = UInt32(truncatingIfNeeded: try unsigned(offset + 1, 4))
      return .value(.double(Double(Float(bitPattern: bits))))
    case (0x2, 3): return .value(.double(Double(bitPattern: try unsigned(offset + 1, 8))))
    case (0x3, 3):
      let seconds = Double(bitPattern: try unsigned(offset + 1, 8))
      return .value(.date(Date(timeIntervalSinceReferenceDate: seconds)))
    case (0x4, _):
      let (count, start) = try count(at: offset)
      return .value(.data(Data(try content(start, count))))
    case (0x5, _), (0x6, _):
      let text = try text(at: offset)
      return text.map { .value(.string($0)) } ?? .invalid("the string's characters are damaged")
    case (0x8, _):
      return .invalid("a UID (a reference inside a keyed archive) has no counterpart among values")
    case (0xA, _):
      var nodes: [PropertyListNode] = []
      for object in try objects(at: offset, factor: 1) { nodes.append(try node(object)) }
      return .array(nodes)
    case (0xB, _), (0xC, _): return .invalid("a set has no counterpart among values")
    case (0xD, _): return try dictionary(at: offset)
    default: return .invalid("an object of an unknown kind")
    }
  }

  private func dictionary(at offset: Int) throws(PropertyListError) -> PropertyListNode {
    let objects = try objects(at: offset, factor: 2)
    let count = objects.count / 2
    var members: [(key: String, node: PropertyListNode)] = []
    for index in 0..<count {
      let offset = try self.offset(of: objects[index])
      guard [0x5, 0x6].contains(bytes[offset] >> 4) else {
        return .invalid("a dictionary has a key that is no string")
      }
      guard let key = try text(at: offset) else {
        return .invalid("a dictionary has a key whose characters are damaged")
      }
      members.append((key, try node(objects[count + index])))
    }
    return .dictionary(members)
  }

  /// Nil for characters that ASCII or UTF-16 does not have.
  private func text(at offset: Int) throws(PropertyListError) -> String? {
    let (count, start) = try count(at: offset)
    if bytes[offset] >> 4 == 0x5 {
      let content = try content(start, count)
      return content.allSatisfy { $0 < 0x80 } ? String(decoding: content, as: UTF8.self) : nil
    }
    let content = try content(start, count * 2)
    let units = stride(from: content.startIndex, to: content.endIndex, by: 2).map {
      UInt16(content[$0]) << 8 | UInt16(content[$0 + 1])
    }
    return String(validating: units, as: UTF16.self)
  }

  /// Reads an integer: 1, 2 and 4 bytes have no sign, 8 and 16 have one.
  private func integer(_ start: Int, _ width: Int) throws(PropertyListError) -> PropertyListNode {
    guard width == 16 else {
      let bits = try unsigned(start, width)
      return .value(.integer(width < 8 ? Int64(bits) : Int64(bitPattern: bits)))
    }
    let (high, low) = (try unsigned(start, 8), try unsigned(start + 8, 8))
    let integer = Int64(bitPattern: low)
    guard high == (integer < 0 ? UInt64.max : 0) else {
      return .invalid(
        high == 0
          ? "the integer \(low) is larger than \(Int64.max)" : "the integer has more than 64 bits")
    }
    return .value(.integer(integer))
  }

  private func unsigned(_ start: Int, _ width: Int) throws(PropertyListError) -> UInt64 {
    try content(start, width).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Reads a big-endian number; nil outside the file, or if it is too large.
  private static func number(_ bytes: [UInt8], _ offset: Int, _ width: Int) -> Int? {
    guard offset >= 0, offset <= bytes.count - width else { return nil }
    var number: UInt64 = 0
    for byte in bytes[offset..<offset + width] { number = number << 8 | UInt64(byte) }
    return number < UInt64(Int32.max) ? Int(number) : nil
  }
}
