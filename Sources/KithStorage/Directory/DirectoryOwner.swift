import Foundation

/// Tells which process has a directory open, for people to read.
package enum DirectoryOwner {
  /// The process that the directory's lock names; nil if there is none. The lock keeps the name of
  /// an owner that is gone: ask only where somebody is known to own it.
  package static func processID(of directory: String) -> Int32? {
    guard let file = FileHandle(forReadingAtPath: directory + "/lock"),
      let bytes = try? file.read(upToCount: 128)
    else { return nil }
    let line = String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" }
    return line.hasPrefix("pid ") ? Int32(line.dropFirst(4)) : nil
  }
}
