import Foundation

/// Tells a write-ahead log cut by a crash from one with a flipped bit.
///
/// SQLite silently ends the log at the first frame that fails its checksum. A crash cuts only the
/// last commit, because each is durable before the next. So a sound commit after a failing frame
/// means damage. Damage to the last commit looks like a crash.
///
/// The format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.
enum LogDamage {
  private static let headerBytes = 32
  private static let frameHeaderBytes = 24

  /// The database must be closed.
  ///
  /// - Complexity: O(*n*) in the log's bytes.
  static func isThere(in path: String) -> Bool {
    guard let log = try? Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped) else {
      return false
    }
    return log.withUnsafeBytes(isThere)
  }

  private static func isThere(in log: UnsafeRawBufferPointer) -> Bool {
    guard log.count > headerBytes else { return false }
    let magic = log.number(at: 0)
    let sums = Sums(isBigEndian: magic == 0x377f_0683)
    let pageBytes = Int(log.number(at: 8))
    let isPlausible = (512...65_536).contains(pageBytes) && pageBytes.nonzeroBitCount == 1
    let frameBytes = frameHeaderBytes + (isPlausible ? pageBytes : 4_096)
    let count = (log.count - headerBytes) / frameBytes
    guard count > 0 else { return false }
    let isHeaderSound =
      magic & ~1 == 0x377f_0682
      && sums.of(log, 0..<24, after: Sums.Pair()) == Sums.Pair(log, at: 24)
    let salt = Sums.Pair(log, at: isHeaderSound ? 16 : headerBytes + 8)

    func start(_ frame: Int) -> Int { headerBytes + frame * frameBytes }
    func isOfThisLog(_ frame: Int) -> Bool { Sums.Pair(log, at: start(frame) + 8) == salt }
    func endsCommit(_ frame: Int) -> Bool { log.number(at: start(frame) + 4) != 0 }
    /// Checks a frame after its predecessor's checksum.
    func isSound(_ frame: Int) -> Bool {
      guard isOfThisLog(frame) else { return false }
      let place = start(frame)
      let before = Sums.Pair(log, at: frame == 0 ? 24 : start(frame - 1) + 16)
      let head = sums.of(log, place..<place + 8, after: before)
      return sums.of(log, place + frameHeaderBytes..<place + frameBytes, after: head)
        == Sums.Pair(log, at: place + 16)
    }

    guard isHeaderSound else {
      return (0..<count).contains { endsCommit($0) && isSound($0) }
    }
    guard let first = (0..<count).first(where: { !isSound($0) }) else { return false }
    var hasCommit = isOfThisLog(first) && endsCommit(first)
    for frame in first + 1..<max(count, first + 1) where isOfThisLog(frame) {
      if hasCommit, isSound(frame) { return true }
      hasCommit = hasCommit || endsCommit(frame)
    }
    return false
  }

  private struct Sums {
    struct Pair: Equatable {
      var first: UInt32 = 0
      var second: UInt32 = 0

      init() {}

      init(_ log: UnsafeRawBufferPointer, at place: Int) {
        (first, second) = (log.number(at: place), log.number(at: place + 4))
      }
    }

    let isBigEndian: Bool

    /// Eight bytes at a time.
    func of(_ log: UnsafeRawBufferPointer, _ range: Range<Int>, after before: Pair) -> Pair {
      var sum = before
      for place in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
        sum.first &+= word(log, place) &+ sum.second
        sum.second &+= word(log, place + 4) &+ sum.first
      }
      return sum
    }

    private func word(_ log: UnsafeRawBufferPointer, _ place: Int) -> UInt32 {
      let word = log.loadUnaligned(fromByteOffset: place, as: UInt32.self)
      return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Big-endian.
  fileprivate func number(at place: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: place, as: UInt32.self))
  }
}
