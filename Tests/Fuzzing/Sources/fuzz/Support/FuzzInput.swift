/// Takes an input apart from its front; past its end everything is zero.
struct FuzzInput {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { position >= bytes.count }

  mutating func byte() -> UInt8 {
    guard position < bytes.count else { return 0 }
    defer { position += 1 }
    return bytes[position]
  }

  /// A number below a limit, of one byte.
  mutating func number(below limit: Int) -> Int { limit > 0 ? Int(byte()) % limit : 0 }

  mutating func bool() -> Bool { byte() & 1 == 1 }

  mutating func uint16() -> Int { Int(byte()) << 8 | Int(byte()) }

  mutating func uint64() -> UInt64 {
    var number: UInt64 = 0
    for _ in 0..<8 { number = number << 8 | UInt64(byte()) }
    return number
  }

  /// As many bytes as are there, up to a number.
  mutating func take(_ count: Int) -> [UInt8] {
    let end = min(bytes.count, position + max(0, count))
    defer { position = end }
    return Array(bytes[position..<end])
  }

  /// A length in two bytes, and so many bytes.
  mutating func block() -> [UInt8] {
    let count = uint16()
    return take(count)
  }

  /// All that is left.
  mutating func rest() -> [UInt8] { take(bytes.count) }
}

/// Puts an input together as ``FuzzInput`` takes it apart.
struct FuzzOutput {
  private(set) var bytes: [UInt8] = []

  mutating func byte(_ number: Int) { bytes.append(UInt8(truncatingIfNeeded: number)) }

  mutating func bytes(_ list: Int...) { for number in list { byte(number) } }

  mutating func block(_ block: [UInt8]) {
    byte(block.count >> 8)
    byte(block.count)
    bytes += block
  }

  mutating func raw(_ more: [UInt8]) { bytes += more }
}

/// Ends the process if a promise is broken, which libFuzzer calls a crash.
func require(
  _ holds: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String,
  file: StaticString = #fileID, line: UInt = #line
) {
  guard (try? holds()) != true else { return }
  fatalError(message(), file: file, line: line)
}
