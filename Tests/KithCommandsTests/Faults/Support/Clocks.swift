import Foundation
import KithTestSupport

/// The time that a process reads: libfaketime answers instead of the system.
enum Clocks {
  /// The library of Debian's package `faketime`.
  private static let library =
    (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib"))?
    .map { "/usr/lib/\($0)/faketime/libfaketimeMT.so.1" }
    .first { FileManager.default.fileExists(atPath: $0) }

  static let isPossible = library != nil

  /// The command that starts a process with such an environment. libfaketime alters the environment
  /// of the first process that it is in, and Swift's runtime then finds no arguments: so the first
  /// process is another one.
  static let launcher = ["env"]

  /// The environment of a process whose wall clock is off by what a file says, such as `+5y` or
  /// `-3600`; the file is read again at every look at the clock. Its monotonic clocks are right.
  static func environment(offsetFile: URL, isSynchronised: URL? = nil) throws -> [String: String] {
    guard let library else {
      throw NotInTime("libfaketime is missing: apt-get install faketime")
    }
    return [
      "LD_PRELOAD": ([library] + (isSynchronised.map { [$0.path] } ?? [])).joined(separator: ":"),
      "FAKETIME_TIMESTAMP_FILE": offsetFile.path, "FAKETIME_NO_CACHE": "1",
      "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
    ]
  }

  /// Sets the offset, in one step.
  static func set(_ offset: String, in file: URL) throws {
    try Data((offset + "\n").utf8).write(to: file, options: .atomic)
  }

  /// A library that has `adjtimex` say the clock is synchronised, which on a host without time
  /// service it never does.
  static func synchronisedLibrary(in directory: URL) throws -> URL {
    let (source, library) = (
      directory.appending(path: "adjtimex.c"), directory.appending(path: "adjtimex.so")
    )
    // struct timex begins with `modes`, and its sixth word is `status`: zero is synchronised.
    let code = "int adjtimex(void *status) { (void)status; return 0; }\n"
    try Data(code.utf8).write(to: source)
    try Shell.run("clang", "-shared", "-fPIC", "-o", library.path, source.path)
    return library
  }
}
