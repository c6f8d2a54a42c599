import Foundation

/// For messages to people.
package enum DirectoryOwner {
  /// The lock still names an owner that has ended: call this only if another process is known to
  /// own the directory.
  package static func processID(of directory: String) -> Int32? {
    guard let file = FileHandle(forReadingAtPath: directory + "/lock"),
      let bytes = try? file.read(upToCount: 128)
    else { return nil }
    let line = String(decoding: bytes, as: UTF8.self).prefix { $0 != "\n" }
    return line.hasPrefix("pid ") ? Int32(line.dropFirst(4)) : nil
  }
}
