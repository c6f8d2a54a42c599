import FoundationEssentials

/// SQLite's write-ahead log, read without SQLite.
///
/// SQLite silently ends the log at the first frame that fails its checksum. A crash cuts only the
/// last commit, because each is durable before the next. So a sound commit after a failing frame
/// means damage. Damage to the last commit looks like a crash.
///
/// The format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.
struct WriteAheadLog {
  private static let headerBytes = 32
  private static let frameHeaderBytes = 24

  let bytes: Data
  let pageBytes: Int
  private let frameBytes: Int
  private let frames: Int
  private let sums: Sums
  private let isHeaderSound: Bool
  private let salt: Sums.Pair

  /// Nil if there is no log with a frame. The database must be closed.
  init?(_ path: String) {
    guard let log = try? Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped) else {
      return nil
    }
    bytes = log
    guard log.count > Self.headerBytes else { return nil }
    let magic = log.number(at: 0)
    sums = Sums(isBigEndian: magic == 0x377f_0683)
    let stated = Int(log.number(at: 8))
    let isPlausible = (512...65_536).contains(stated) && stated.nonzeroBitCount == 1
    pageBytes = isPlausible ? stated : 4_096
    frameBytes = Self.frameHeaderBytes + pageBytes
    frames = (log.count - Self.headerBytes) / frameBytes
    guard frames > 0 else { return nil }
    isHeaderSound =
      magic & ~1 == 0x377f_0682
      && sums.of(log, 0..<24, after: Sums.Pair()) == Sums.Pair(log, at: 24)
    salt = Sums.Pair(log, at: isHeaderSound ? 16 : Self.headerBytes + 8)
  }

  /// - Complexity: O(*n*) in the log's bytes.
  var isDamaged: Bool {
    guard isHeaderSound else {
      return (0..<frames).contains { endsCommit($0) && isSound($0) }
    }
    guard let first = (0..<frames).first(where: { !isSound($0) }) else { return false }
    var hasCommit = isOfThisLog(first) && endsCommit(first)
    for frame in first + 1..<max(frames, first + 1) where isOfThisLog(frame) {
      if hasCommit, isSound(frame) { return true }
      hasCommit = hasCommit || endsCommit(frame)
    }
    return false
  }

  /// The offsets of the pages that commits wrote, up to the first frame that fails; and how many
  /// pages the database had after the last of them, 0: there is none.
  ///
  /// - Complexity: O(*n*) in the log's bytes.
  var committed: (pages: [Int: Range<Int>], count: Int) {
    guard isHeaderSound else { return ([:], 0) }
    var committed: [Int: Range<Int>] = [:]
    var pending: [Int: Range<Int>] = [:]
    var count = 0
    for frame in 0..<frames {
      guard isSound(frame) else { break }
      let start = start(frame)
      pending[Int(bytes.number(at: start))] =
        start + Self.frameHeaderBytes..<start + frameBytes
      guard endsCommit(frame) else { continue }
      count = Int(bytes.number(at: start + 4))
      committed.merge(pending) { $1 }
      pending = [:]
    }
    return (committed, count)
  }

  private func start(_ frame: Int) -> Int { Self.headerBytes + frame * frameBytes }

  private func isOfThisLog(_ frame: Int) -> Bool { Sums.Pair(bytes, at: start(frame) + 8) == salt }

  private func endsCommit(_ frame: Int) -> Bool { bytes.number(at: start(frame) + 4) != 0 }

  /// Checks a frame after its predecessor's checksum.
  private func isSound(_ frame: Int) -> Bool {
    guard isOfThisLog(frame) else { return false }
    let position = start(frame)
    let before = Sums.Pair(bytes, at: frame == 0 ? 24 : start(frame - 1) + 16)
    let head = sums.of(bytes, position..<position + 8, after: before)
    return sums.of(bytes, position + Self.frameHeaderBytes..<position + frameBytes, after: head)
      == Sums.Pair(bytes, at: position + 16)
  }

  private struct Sums {
    struct Pair: Equatable {
      var first: UInt32 = 0
      var second: UInt32 = 0

      init() {}

      init(_ log: Data, at position: Int) {
        (first, second) = (log.number(at: position), log.number(at: position + 4))
      }
    }

    let isBigEndian: Bool

    /// Eight bytes at a time.
    func of(_ log: Data, _ range: Range<Int>, after before: Pair) -> Pair {
      log.withUnsafeBytes { log in
        var sum = before
        for position in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
          sum.first &+= word(log, position) &+ sum.second
          sum.second &+= word(log, position + 4) &+ sum.first
        }
        return sum
      }
    }

    private func word(_ log: UnsafeRawBufferPointer, _ position: Int) -> UInt32 {
      let word = log.loadUnaligned(fromByteOffset: position, as: UInt32.self)
      return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }
  }
}

extension Data {
  /// Big-endian.
  fileprivate func number(at position: Int) -> UInt32 {
    withUnsafeBytes {
      UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }
  }
}
