internal import KithCrypto

/// A hash of all events: equal traces mean equal runs, event for event.
package struct Trace {
  private var hasher = Blake2b.Hasher()
  private(set) var events = 0
  /// Nil if not requested.
  package private(set) var lines: [String]?

  init(keepsTrace: Bool) { lines = keepsTrace ? [] : nil }

  mutating func note(
    _ kind: String, _ numbers: [UInt64], at time: UInt64, _ words: @autoclosure () -> String = ""
  ) {
    events += 1
    hasher.update(Array(kind.utf8))
    for number in numbers + [time] {
      hasher.update(withUnsafeBytes(of: number.littleEndian, Array.init))
    }
    guard lines != nil else { return }
    let seconds = "\(time / 1_000_000).\(String(String(1_000_000 + time % 1_000_000).dropFirst()))"
    lines?.append(
      "\(seconds) \(kind) \(numbers.map(String.init).joined(separator: " ")) \(words())")
  }

  mutating func note(bytes: [UInt8]) { hasher.update(bytes) }

  /// Hexadecimal.
  var digest: String {
    hasher.digest256().bytes.map { byte in
      let text = String(byte, radix: 16)
      return text.count == 1 ? "0" + text : text
    }.joined()
  }
}
