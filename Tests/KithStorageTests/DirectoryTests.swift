import Foundation
import KithCore
import KithCrypto
import KithTestSupport
import Testing

@testable import KithStorage

@Suite struct DirectoryTests {
  let cheap: Argon2Parameters

  init() throws { cheap = try Argon2Parameters(operations: 1, memoryBytes: 8_192) }

  func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  func code(_ body: () throws(StorageError) -> Void) -> StorageError.Code? {
    do { try body() } catch { return error.code }
    return nil
  }

  @Test func aDeviceIsMadeOnceAndIsTheSameAfterwards() throws {
    let directory = try TestDirectory()
    let nested = directory.device + "/below"
    let missing = code { () throws(StorageError) in _ = try DeviceDirectory.open(at: nested) }
    #expect(missing == .missing)
    let made = try DeviceDirectory.create(
      at: nested, secrets: newSecrets(), initial: [.put(.clock, HybridTime(rawValue: 5).row)])
    #expect(!made.storage.isCopy)
    #expect(made.controlSocketPath == nested + "/control")
    let id = made.keys.id
    try made.close()
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.create(at: nested, secrets: newSecrets(), initial: [])
    }
    #expect(error?.code == .alreadyExists)
    let again = try DeviceDirectory.open(at: nested)
    #expect(again.keys.id == id)
    #expect(try again.storage.load().clock.rawValue == 5)
    #expect(try mode(nested) == 0o700)
    for file in ["/secrets", "/lock", "/kith.sqlite", "/kith.sqlite-wal"] {
      #expect(try mode(nested + file) == 0o600, "\(file)")
    }
  }

  /// The child's copies of the descriptors share the parent's lock, and its copy of SQLite would empty
  /// the parent's log.
  @Test func `a forked child that closes the device leaves it to its parent`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    try device.storage.commit([.put(.clock, HybridTime(rawValue: 5).row)])
    let log = directory.device + "/kith.sqlite-wal"
    let bytes = Files.size(log)
    try #require(bytes > 0)

    let child = fork()
    if child == 0 {
      try? device.close()
      _exit(0)
    }
    try #require(child > 0)
    var status: Int32 = 0
    try eventuallyBlocking("the child to end") { waitpid(child, &status, WNOHANG) == child }
    #expect(status == 0)

    #expect(Files.size(log) == bytes)
    let second = code { () throws(StorageError) in
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(second == .inUse)
    try device.storage.commit([.put(.clock, HybridTime(rawValue: 6).row)])
    try device.close()
    let again = try DeviceDirectory.open(at: directory.device)
    #expect(try again.storage.load().clock.rawValue == 6)
    #expect(!again.storage.isCopy)
  }

  @Test func `a lock that another process keeps is waited for, and not for ever`() throws {
    let directory = try TestDirectory()
    let path = directory.child("lock")
    let other = open(path, O_RDWR | O_CREAT, 0o600)
    try #require(other >= 0 && flock(other, LOCK_EX) == 0)
    defer { close(other) }
    let late = code { () throws(StorageError) in
      try SmallFile.withLock(path, within: .milliseconds(30)) {}
    }
    #expect(late == .inUse)
    DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { flock(other, LOCK_UN) }
    try SmallFile.withLock(path) {}
  }

  @Test func aSecondOwnerIsRefusedWithTheFirstOnesProcess() throws {
    let directory = try TestDirectory()
    let first = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(error?.code == .inUse)
    #expect(error?.message.contains("process \(getpid())") == true)
    try first.close()
    try DeviceDirectory.open(at: directory.device).close()
    #expect(throws: StorageError.self) { try first.storage.commit([]) }
  }

  @Test func aRemovedDeviceLeavesOnlyItsLock() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let error = #expect(throws: StorageError.self) { try DeviceDirectory.remove(directory.device) }
    #expect(error?.code == .inUse)
    try device.close()
    // The second call is one after a broken off removal.
    for _ in 0..<2 { try DeviceDirectory.remove(directory.device) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.device) == ["lock"])
    try DeviceDirectory.create(at: directory.device, secrets: newSecrets(), initial: []).close()
  }

  /// As a child has it between `fork` and `exec`.
  @Test func theLockIsGivenBackAlsoWhereAChildHasItsDescriptor() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let path = URL(filePath: directory.device + "/lock").resolvingSymlinksInPath().path
    let descriptor = try #require(
      FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
        .first {
          (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))
            == path
        })
    let inherited = dup(descriptor)
    defer { close(inherited) }
    try device.close()
    try DeviceDirectory.open(at: directory.device).close()
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/flock")))
  func anotherProcessHoldsTheLockUntilItIsKilled() throws {
    let directory = try TestDirectory()
    try DeviceDirectory.create(at: directory.device, secrets: newSecrets(), initial: []).close()
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
    child.arguments = [
      "--no-fork", directory.device + "/lock", "/bin/sh", "-c", "echo held; exec sleep 60",
    ]
    let output = Pipe()
    child.standardOutput = output
    try child.run()
    _ = output.fileHandleForReading.availableData
    let refused = code { () throws(StorageError) in
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(refused == .inUse)
    kill(child.processIdentifier, SIGKILL)
    child.waitUntilExit()
    try DeviceDirectory.open(at: directory.device).close()
  }

  @Test func openModesAreRefusedWithTheCommandThatMendsThem() throws {
    let directory = try TestDirectory()
    try DeviceDirectory.create(at: directory.device, secrets: newSecrets(), initial: []).close()
    for (path, loose, tight) in [
      (directory.device, 0o750, 0o700), (directory.device + "/secrets", 0o640, 0o600),
    ] {
      chmod(path, mode_t(loose))
      let error = #expect(throws: StorageError.self) {
        _ = try DeviceDirectory.open(at: directory.device)
      }
      #expect(error?.code == .unsafePermissions)
      #expect(error?.message.contains("chmod \(String(tight, radix: 8)) '\(path)'") == true)
      chmod(path, mode_t(tight))
    }
    try DeviceDirectory.open(at: directory.device).close()
  }

  @Test func aPassphraseIsNeededAndCanBeChanged() throws {
    let directory = try TestDirectory()
    let path = directory.device
    let made = try DeviceDirectory.create(
      at: path, secrets: newSecrets(), initial: [], passphrase: "one", stretching: cheap)
    let id = made.keys.id
    try made.close()
    for wrong in [nil, "two"] as [Passphrase?] {
      let refused = code { () throws(StorageError) in
        _ = try DeviceDirectory.open(at: path, passphrase: wrong)
      }
      #expect(refused == .passphrase)
    }
    try DeviceDirectory.changePassphrase(at: path, from: "one", to: "three", stretching: cheap)
    let refused = code { () throws(StorageError) in
      _ = try DeviceDirectory.open(at: path, passphrase: "one")
    }
    #expect(refused == .passphrase)
    try DeviceDirectory.changePassphrase(at: path, from: "three", to: nil)
    #expect(try DeviceDirectory.open(at: path).keys.id == id)
    #expect(try mode(path + "/secrets") == 0o600)
  }

  @Test func aSecretsFileThatWasAlteredIsDamagedNotWrong() throws {
    let directory = try TestDirectory()
    let path = directory.device + "/secrets"
    try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [], passphrase: "one", stretching: cheap
    ).close()
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    for offset in [0, 8, 9, 12, 20, 60, whole.count - 1] {
      var altered = whole
      altered[offset] ^= 1
      try altered.write(to: URL(fileURLWithPath: path))
      let refused = #expect(throws: StorageError.self) {
        _ = try DeviceDirectory.open(at: directory.device, passphrase: "one")
      }
      #expect(refused?.code == .damaged, "byte \(offset)")
      #expect(refused?.path == path)
    }
    for count in [0, 5, 42, whole.count - 1] {
      try whole.prefix(count).write(to: URL(fileURLWithPath: path))
      let refused = code { () throws(StorageError) in
        _ = try DeviceDirectory.open(at: directory.device, passphrase: "one")
      }
      #expect(refused == .damaged, "\(count) bytes")
    }
  }

  @Test func aCreationThatStoppedBetweenTheRenamesIsFinished() throws {
    let directory = try TestDirectory()
    let path = directory.device
    try DeviceDirectory.create(
      at: path, secrets: newSecrets(), initial: [.put(.clock, HybridTime(rawValue: 5).row)]
    ).close()
    try FileManager.default.moveItem(
      atPath: path + "/kith.sqlite", toPath: path + "/kith.sqlite.new")
    let device = try DeviceDirectory.open(at: path)
    #expect(!device.storage.isCopy)
    #expect(try device.storage.load().clock.rawValue == 5)
  }

  @Test func aCreationThatStoppedBeforeTheRenamesLeavesNoDevice() throws {
    let directory = try TestDirectory()
    let path = directory.device
    try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: []).close()
    for name in ["kith.sqlite", "secrets"] {
      try FileManager.default.moveItem(atPath: "\(path)/\(name)", toPath: "\(path)/\(name).new")
    }
    let refused = code { () throws(StorageError) in _ = try DeviceDirectory.open(at: path) }
    #expect(refused == .missing)
    #expect(!DeviceDirectory.holdsDevice(path))
    let device = try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: [])
    #expect(!device.storage.isCopy)
  }

  @Test(arguments: ["kith.sqlite", "secrets"])
  func aMissingFileIsNamedAndNotMadeAnew(name: String) throws {
    let directory = try TestDirectory()
    let path = directory.device
    try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: []).close()
    try FileManager.default.removeItem(atPath: "\(path)/\(name)")
    let error = #expect(throws: StorageError.self) { _ = try DeviceDirectory.open(at: path) }
    #expect(error?.code == .damaged)
    #expect(error?.path == "\(path)/\(name)")
    #expect(!FileManager.default.fileExists(atPath: "\(path)/\(name)"))
    let refused = code { () throws(StorageError) in
      _ = try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: [])
    }
    #expect(refused == .alreadyExists)
  }

  @Test func aDatabaseBesideAnotherDevicesSecretsIsRefused() throws {
    let (directory, other) = (try TestDirectory(), try TestDirectory())
    for path in [directory.device, other.device] {
      try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: []).close()
    }
    let path = directory.device + "/kith.sqlite"
    for file in ["", "-wal"] where Files.exists(path + file) {
      try FileManager.default.removeItem(atPath: path + file)
    }
    try FileManager.default.copyItem(atPath: other.device + "/kith.sqlite", toPath: path)
    chmod(path, 0o600)
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let error = #expect(throws: StorageError.self) {
      _ = try DeviceDirectory.open(at: directory.device)
    }
    #expect(error?.code == .damaged && error?.path == path)
    #expect(error?.message.contains("another device") == true)
    // It is unchanged, for a person who puts it in its right place.
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
  }

  @Test func aPreparedDeviceDoesNotExistAndIsTakenAway() throws {
    let directory = try TestDirectory()
    let prepared = try DeviceDirectory.prepare(
      in: DeviceDirectory.reserve(directory.device), secrets: newSecrets(), initial: [])
    #expect(!DeviceDirectory.holdsDevice(directory.device))
    try prepared.discard()
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.device) == ["lock"])
  }

  /// The database names the next generation before the lock file has it: a crash in between is no copy.
  @Test func aCrashBetweenTheDatabasesCommitAndTheLocksGenerationIsNoCopy() throws {
    let directory = try TestDirectory()
    let path = directory.device
    try DeviceDirectory.create(at: path, secrets: newSecrets(), initial: []).close()
    let lock = URL(fileURLWithPath: path + "/lock")
    for _ in 0..<3 {
      let before = try Data(contentsOf: lock)
      do {
        // Let go of without being closed, as by a kill: nothing more is written.
        let device = try DeviceDirectory.open(at: path)
        #expect(!device.storage.isCopy)
      }
      #expect(try Data(contentsOf: lock) != before)
      let file = try FileHandle(forWritingTo: lock)
      try file.write(contentsOf: before)
      try file.close()
      let device = try DeviceDirectory.open(at: path)
      #expect(!device.storage.isCopy)
      try device.close()
    }
    // An older one is no crash's.
    let old = try Data(contentsOf: lock)
    for _ in 0..<2 { try DeviceDirectory.open(at: path).close() }
    try old.write(to: lock)
    let device = try DeviceDirectory.open(at: path)
    #expect(device.storage.isCopy)
  }
}
