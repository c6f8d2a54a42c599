import Foundation

@testable import KithCore

/// SplitMix64: the same seed gives the same numbers everywhere.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension PropertyListValue {
  /// A value of any kind, at most `depth` containers deep.
  static func random(depth: Int, using random: inout SeededGenerator) -> PropertyListValue {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
    case 0: return .bool(.random(using: &random))
    case 1:
      let shift = Int64.random(in: 0..<64, using: &random)
      return .integer(Int64.random(in: .min ... .max, using: &random) >> shift)
    case 2: return .double(Double(bitPattern: random.next()))
    case 3: return .string(randomText(using: &random))
    case 4: return .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: random.next())))
    case 5:
      let count = Int.random(in: 0..<200, using: &random)
      return .data(Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }))
    case 6:
      let count = Int.random(in: 0..<6, using: &random)
      return .array((0..<count).map { _ in .random(depth: depth - 1, using: &random) })
    default:
      let count = Int.random(in: 0..<6, using: &random)
      var members: [String: PropertyListValue] = [:]
      for _ in 0..<count {
        members[randomText(using: &random)] = .random(depth: depth - 1, using: &random)
      }
      return .dictionary(members)
    }
  }

  private static func randomText(using random: inout SeededGenerator) -> String {
    let alphabet: [Character] = [
      "a", "b", "Z", "0", "é", "e\u{301}", "ß", "漢", "🧭", "\0", "\"", "\n",
    ]
    let count = Int.random(in: 0..<12, using: &random)
    return String((0..<count).compactMap { _ in alphabet.randomElement(using: &random) })
  }

  /// A bool inside `depth` containers, arrays and dictionaries in turn.
  static func nested(_ depth: Int) -> PropertyListValue {
    (0..<depth).reduce(true) { value, level in
      level.isMultiple(of: 2) ? .array([value]) : .dictionary(["k": value])
    }
  }
}
