import Foundation

/// The frames of an SQLite write-ahead log (sqlite.org/fileformat2.html, section 4), as far as a
/// test must know them to cut it at the points at which a power cut may.
struct WriteAheadLog {
  /// Bytes of the header.
  private static let headerBytes = 32
  /// Bytes before each frame's page.
  private static let frameHeaderBytes = 24

  let bytes: Data
  /// The salts in the frames that count: they change whenever the log begins anew.
  let salts: Data
  private let pageBytes: Int

  init?(_ bytes: Data) {
    guard bytes.count >= Self.headerBytes else { return nil }
    self.bytes = bytes
    salts = bytes.subdata(in: 16..<24)
    pageBytes = Self.number(bytes, 8)
  }

  private static func number(_ bytes: Data, _ offset: Int) -> Int {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
  }

  /// The end of the last commit's frame.
  var endOfLastCommit: Int { committed.end }

  /// The pages that commits wrote, each as the last of them left it, by number from 1.
  var pages: [(number: Int, bytes: Data)] {
    committed.pages.sorted { $0.key < $1.key }.map { number, offset in
      (number, bytes.subdata(in: offset..<offset + pageBytes))
    }
  }

  private var committed: (end: Int, pages: [Int: Int]) {
    var end = Self.headerBytes
    var offset = Self.headerBytes
    var pages: [Int: Int] = [:]
    var uncommitted: [Int: Int] = [:]
    while offset + Self.frameHeaderBytes + pageBytes <= bytes.count,
      bytes.subdata(in: offset + 8..<offset + 16) == salts
    {
      uncommitted[Self.number(bytes, offset)] = offset + Self.frameHeaderBytes
      let isCommit = Self.number(bytes, offset + 4) != 0
      offset += Self.frameHeaderBytes + pageBytes
      if isCommit {
        end = offset
        pages.merge(uncommitted) { _, new in new }
        uncommitted = [:]
      }
    }
    return (end, pages)
  }
}
