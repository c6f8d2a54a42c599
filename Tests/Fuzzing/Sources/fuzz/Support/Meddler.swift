/// Alters messages on their way.
struct Meddler {
  var log: [[UInt8]] = []

  /// The message as it arrives, as the input says.
  mutating func pass(_ message: [UInt8], _ input: inout FuzzInput) -> [UInt8] {
    log.append(message)
    var altered = message
    switch input.number(below: 12) {
    case 0: altered = input.block()
    case 1: altered = Array(message.prefix(input.uint16()))
    case 2: altered += input.block()
    case 3: altered = log[input.number(below: log.count)]
    case 4, 5:
      let place = input.uint16()
      if place < altered.count { altered[place] ^= input.byte() }
    case 6:
      // Puts a key of low order in the place of a key.
      let points: [UInt8] = [0, 1, 0xec, 0xed]
      let first = points[input.number(below: points.count)]
      let rest: UInt8 = first > 1 ? 0xff : 0
      let point = [first] + [UInt8](repeating: rest, count: 30) + [first > 1 ? 0x7f : 0]
      altered.replaceSubrange(0..<min(32, altered.count), with: point)
    default: break
    }
    return altered
  }
}
