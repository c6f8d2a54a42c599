import FoundationEssentials
import Glibc
import KithCore

/// The pages of a closed database as of its last commit, read without SQLite, which refuses a file
/// whose structure is damaged.
///
/// The format: <https://www.sqlite.org/fileformat2.html>.
struct DatabaseImage {
  static let headerBytes = 100
  /// SQLite's, and every database of Kith's.
  private static let usualPageBytes = 4_096
  private static let magic = Array("SQLite format 3\0".utf8)

  let pageBytes: Int
  /// The main file with the commits of the write-ahead log.
  private(set) var bytes: [UInt8]
  /// The pages that the log has.
  let logged: [Int]

  var count: Int { bytes.count / pageBytes }

  /// - Complexity: O(*n*) in the bytes of both files.
  init(_ path: String) throws(StorageError) {
    guard let main = FileManager.default.contents(atPath: path) else {
      throw .system("read it", path, errno: errno)
    }
    let stated = main.count > 18 ? Int(main[16]) << 8 | Int(main[17]) : 0
    let isPlausible = (512...32_768).contains(stated) && stated.nonzeroBitCount == 1
    pageBytes = isPlausible ? stated : Self.usualPageBytes
    bytes = [UInt8](main)
    // Pages begin at multiples, and a cut page is none.
    bytes.removeLast(bytes.count % pageBytes)
    var logged: [Int] = []
    if let log = WriteAheadLog(path + "-wal"), log.pageBytes == pageBytes {
      let (pages, count) = log.committed
      if count > 0 {
        let size = count * pageBytes
        bytes.removeLast(max(0, bytes.count - size))
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
      }
      for (number, range) in pages.sorted(by: { $0.key < $1.key }) where number <= count {
        bytes.replaceSubrange(
          (number - 1) * pageBytes..<number * pageBytes, with: log.bytes[range])
        logged.append(number)
      }
    }
    self.logged = logged
  }

  /// Writes the pages that the log has into the main file, durably, as a checkpoint does.
  func writeLogged(to path: String) throws(StorageError) {
    let file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    for number in logged {
      let page = Array(page(number))
      guard pwrite(file, page, page.count, (number - 1) * pageBytes) == page.count else {
        throw .system("write it", path, errno: errno)
      }
    }
    guard fsync(file) == 0 else { throw .system("write it", path, errno: errno) }
  }

  /// Pages have numbers from 1.
  func page(_ number: Int) -> ArraySlice<UInt8> {
    guard (1...max(1, count)).contains(number), count > 0 else { return [] }
    return bytes[(number - 1) * pageBytes..<number * pageBytes]
  }

  /// Whether the fixed members of a file's header are as Kith's databases have them. SQLite calls a
  /// file with another format for writing read-only, not damaged.
  static func isSound(_ header: some Collection<UInt8>) -> Bool {
    let header = Array(header)
    guard header.count == headerBytes, header.starts(with: magic) else { return false }
    let pageBytes = Int(header[16]) << 8 | Int(header[17])
    return (pageBytes == 1 || pageBytes >= 512 && pageBytes.nonzeroBitCount == 1)
      && header[18] == header[19] && (1...2).contains(header[18])
      && header[20...23].elementsEqual([0, 64, 32, 32])
      // Schema format 4, UTF-8, no automatic vacuum.
      && header[44..<48].elementsEqual([0, 0, 0, 4])
      && header[52..<60].elementsEqual([0, 0, 0, 0, 0, 0, 0, 1])
      && header[64..<68].allSatisfy { $0 == 0 }
  }
}

extension RandomAccessCollection<UInt8> where Index == Int {
  /// Big-endian; 0 beyond the end.
  func number(at offset: Int, bytes count: Int) -> Int {
    guard offset >= 0, offset + count <= self.count else { return 0 }
    return self[(startIndex + offset)..<(startIndex + offset + count)].reduce(0) {
      $0 << 8 | Int($1)
    }
  }
}
