import Foundation
import KithTerminal

/// Measures a binary property list before Foundation expands it. Its objects may be shared: 200
/// bytes can stand for more arrays than fit in memory, and Foundation makes each. Measuring is
/// linear in the file. The format: CFBinaryPList.c of swift-corelibs-foundation.
struct BinaryPropertyListBounds {
  /// The most expanded values, keys included.
  static let limitValues = 1 << 20
  /// The most expanded bytes of text and data.
  static let limitBytes = InputText.limit
  /// Nested containers, as in Foundation's XML reader. The store checks its own, lower limit.
  static let limitDepth = 512

  /// The expanded size of an object.
  private struct Size {
    var values = 1
    var bytes = 0
    var depth = 0
  }

  private let bytes: Data
  private let offsetSize: Int
  private let referenceSize: Int
  private let offsetTable: Int
  private var sizes: [Size?]
  /// References read: bounded, because the lists of objects may overlap.
  private var references = 0

  /// Throws if a list is damaged, or expands to too much.
  static func check(_ data: Data) throws(ImportError) {
    guard data.starts(with: Array("bplist".utf8)) else { return }
    guard var bounds = Self(data), let root = bounds.root else { throw damaged }
    _ = try bounds.size(of: root, depth: 0)
  }

  private static let damaged = ImportError("the binary property list is damaged or cut off")
  private static let tooLarge = ImportError(
    "the binary property list unfolds to more than \(Humane.count(limitValues)) values or "
      + "\(Humane.bytes(limitBytes))")

  private init?(_ data: Data) {
    // The last 32 bytes: 6 unused, two sizes, the number of objects, the root, the table.
    guard data.count >= 8 + 32 else { return nil }
    bytes = Data(data)
    let trailer = data.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    sizes = []
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.number(bytes, trailer + 8, 8),
      let table = Self.number(bytes, trailer + 24, 8), table < trailer,
      count > 0, count <= (trailer - table) / offsetSize
    else { return nil }
    offsetTable = table
    sizes = Array(repeating: nil, count: count)
  }

  private var root: Int? { Self.number(bytes, bytes.count - 16, 8) }

  private mutating func size(of object: Int, depth: Int) throws(ImportError) -> Size {
    guard sizes.indices.contains(object) else { throw Self.damaged }
    if let known = sizes[object] { return known }
    // A list that contains itself also ends here.
    guard depth <= Self.limitDepth else {
      throw ImportError("the property list is nested deeper than \(Self.limitDepth)")
    }
    let size = try measure(object, depth)
    sizes[object] = size
    return size
  }

  private mutating func measure(_ object: Int, _ depth: Int) throws(ImportError) -> Size {
    guard
      let place = Self.number(bytes, offsetTable + object * offsetSize, offsetSize),
      place < offsetTable
    else { throw Self.damaged }
    let marker = bytes[place]
    switch marker >> 4 {
    case 0x4, 0x5: return Size(bytes: try count(at: place).count)
    case 0x6: return Size(bytes: try count(at: place).count * 2)
    case 0xA, 0xB: return try container(at: place, factor: 1, depth)
    // Foundation on Linux crashes when it makes one.
    case 0xC: throw ImportError("the binary property list holds a set, which is no value")
    case 0xD: return try container(at: place, factor: 2, depth)
    default: return Size()
    }
  }

  private mutating func container(
    at place: Int, factor: Int, _ depth: Int
  ) throws(ImportError) -> Size {
    let (count, start) = try count(at: place)
    guard count <= bytes.count, start + count * factor * referenceSize <= offsetTable else {
      throw Self.damaged
    }
    references += count * factor
    var sum = Size()
    guard references <= Self.limitValues * 2 else { throw Self.tooLarge }
    for index in 0..<count * factor {
      let place = start + index * referenceSize
      guard let object = Self.number(bytes, place, referenceSize) else { throw Self.damaged }
      let size = try size(of: object, depth: depth + 1)
      sum.values += size.values
      sum.bytes += size.bytes
      sum.depth = max(sum.depth, size.depth)
      guard sum.values <= Self.limitValues, sum.bytes <= Self.limitBytes else {
        throw Self.tooLarge
      }
    }
    sum.depth += 1
    guard sum.depth <= Self.limitDepth else {
      throw ImportError("the property list is nested deeper than \(Self.limitDepth)")
    }
    return sum
  }

  /// Returns the bytes, characters or elements of an object, and their position.
  private func count(at place: Int) throws(ImportError) -> (count: Int, start: Int) {
    let short = Int(bytes[place] & 0xF)
    if short != 0xF { return (short, place + 1) }
    guard place + 1 < offsetTable, bytes[place + 1] >> 4 == 1, bytes[place + 1] & 0xF <= 3 else {
      throw Self.damaged
    }
    let width = 1 << Int(bytes[place + 1] & 0xF)
    guard let count = Self.number(bytes, place + 2, width), count <= bytes.count else {
      throw Self.damaged
    }
    return (count, place + 2 + width)
  }

  /// Reads a big-endian number; nil outside the file, or if it is too large.
  private static func number(_ bytes: Data, _ place: Int, _ width: Int) -> Int? {
    guard place >= 0, place <= bytes.count - width else { return nil }
    var number: UInt64 = 0
    for byte in bytes[place..<place + width] { number = number << 8 | UInt64(byte) }
    return number < UInt64(Int32.max) ? Int(number) : nil
  }
}
