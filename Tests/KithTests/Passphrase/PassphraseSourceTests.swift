import Foundation
import Glibc
import KithCrypto
import KithTestSupport
import Testing

@testable import Kith

/// The files from which passphrases are read.
@Suite("Files of passphrases")
struct PassphraseSourceTests {
  private let directory: TestDirectory
  private var path: String { directory.child("passphrase") }

  init() throws { directory = try TestDirectory() }

  private func write(_ text: String, mode: mode_t = 0o600) throws {
    try Data(text.utf8).write(to: URL(filePath: path))
    chmod(path, mode)
  }

  /// A file of Windows had a passphrase that nobody could type.
  @Test(arguments: ["horse", "horse\n", "horse\r\n"])
  func `a final line end does not count`(text: String) throws {
    try write(text)
    var bytes = Array("horse".utf8)
    let horse = Passphrase(zeroing: &bytes)
    #expect(try PassphraseSource.file(path).read().isSame(as: horse))
  }

  @Test func `the longest may have a line end`() throws {
    let longest = String(repeating: "x", count: Passphrase.maximumBytes)
    try write(longest + "\r\n")
    _ = try PassphraseSource.file(path).read()
    try write(longest + "x")
    #expect(throws: KithError.self) { try PassphraseSource.file(path).read() }
  }

  @Test(arguments: ["", "\n", "\r\n", "\u{FEFF}horse\n"])
  func `nothing, and a byte-order mark, are refused`(text: String) throws {
    try write(text)
    let error = #expect(throws: KithError.self) { try PassphraseSource.file(path).read() }
    #expect(error?.code == .passphrase)
  }

  @Test func `a file that others may read is refused as one with a wrong passphrase is`() throws {
    try write("horse", mode: 0o644)
    let error = #expect(throws: KithError.self) { try PassphraseSource.file(path).read() }
    #expect(error?.code == .passphrase)
    #expect(error?.message.contains("chmod 600 '\(path)'") == true)
  }
}
