import Foundation
import Glibc
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import KithStorage

/// The files that changing a passphrase leaves on the disk.
@Suite struct PassphraseChangeTests {
  let cheap: Argon2Parameters
  let directory: TestDirectory

  init() throws {
    cheap = try Argon2Parameters(operations: 1, memoryBytes: 8_192)
    directory = try TestDirectory()
    try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: []).close()
  }

  private var path: String { directory.device }
  private var secrets: String { path + "/secrets" }

  @Test func `the old file's bytes are overwritten`() throws { try changeAndLookBack() }

  /// Opening takes a file of this mode, too.
  @Test(.enabled(if: getuid() != 0, "root may write every file"))
  func `the bytes of an old file of mode 0400 are overwritten`() throws {
    chmod(secrets, 0o400)
    try changeAndLookBack()
  }

  /// Holds the old file, whose bytes are overwritten once the new one is in its place.
  private func changeAndLookBack() throws {
    let old = open(secrets, O_RDONLY | O_CLOEXEC)
    defer { close(old) }
    try DeviceDirectory.changePassphrase(at: path, from: nil, to: "new", stretching: cheap)
    var bytes = [UInt8](repeating: 1, count: 256)
    let count = pread(old, &bytes, bytes.count, 0)
    #expect(count > 128)
    #expect(bytes.prefix(count).allSatisfy { $0 == 0 })
    #expect(try DeviceDirectory.isUnderPassphrase(path))
    try DeviceDirectory.open(at: path, passphrase: "new").close()
  }

  /// A person may have linked the file somewhere to keep it.
  @Test func `a second name of the old file keeps its bytes`() throws {
    let kept = path + "/kept"
    link(secrets, kept)
    let before = try Data(contentsOf: URL(filePath: kept))
    try DeviceDirectory.changePassphrase(at: path, from: nil, to: "new", stretching: cheap)
    #expect(try Data(contentsOf: URL(filePath: kept)) == before)
  }

  /// A crash while the passphrase is taken away leaves the secrets in the open beside those under it.
  @Test func `the remains of an interrupted change go at the next opening`() throws {
    let plain = try Data(contentsOf: URL(filePath: secrets))
    try DeviceDirectory.changePassphrase(at: path, from: nil, to: "new", stretching: cheap)
    let unfinished = secrets + ".new"
    try Files.makePrivateFile(unfinished)
    try plain.write(to: URL(filePath: unfinished))
    let remains = open(unfinished, O_RDONLY | O_CLOEXEC)
    defer { close(remains) }
    try DeviceDirectory.open(at: path, passphrase: "new").close()
    #expect(!Files.exists(unfinished))
    var bytes = [UInt8](repeating: 1, count: 256)
    let count = pread(remains, &bytes, bytes.count, 0)
    #expect(count == plain.count && bytes.prefix(count).allSatisfy { $0 == 0 })
  }

  @Test func `a change that is refused changes nothing`() throws {
    try DeviceDirectory.changePassphrase(at: path, from: nil, to: "old", stretching: cheap)
    let before = try Data(contentsOf: URL(filePath: secrets))
    for wrong in [nil, "wrong"] as [Passphrase?] {
      #expect(throws: StorageError.self) {
        try DeviceDirectory.changePassphrase(at: path, from: wrong, to: "new", stretching: cheap)
      }
    }
    #expect(try Data(contentsOf: URL(filePath: secrets)) == before)
    #expect(!Files.exists(secrets + ".new"))
    #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.isUnderPassphrase(path + "/nowhere")
    }
  }
}
