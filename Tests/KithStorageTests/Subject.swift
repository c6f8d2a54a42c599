import KithCore
import KithSimulator
import KithTestSupport
import Testing

@testable import KithStorage

/// A storage under test, and how to see what a restart would see.
final class Subject {
  private(set) var storage: any ReplicaStorage
  private let failing: (any ReplicaStorage, Bool) throws -> Void
  private let reopen: () throws -> any ReplicaStorage

  init(
    _ storage: any ReplicaStorage, failing: @escaping (any ReplicaStorage, Bool) throws -> Void,
    reopen: @escaping () throws -> any ReplicaStorage
  ) {
    self.storage = storage
    self.failing = failing
    self.reopen = reopen
  }

  /// Makes commits fail, or takes that back.
  func setFailing(_ isFailing: Bool) throws { try failing(storage, isFailing) }

  /// Closes and opens again.
  func restart() throws { storage = try reopen() }

  /// Closes, opens again, and loads.
  func reload() throws -> Snapshot {
    try restart()
    return try storage.load()
  }
}

/// The storages that must behave alike.
enum Backend: CaseIterable {
  case memory, simulated, sqlite

  func withSubject(_ body: (Subject) throws -> Void) throws {
    switch self {
    case .memory:
      let storage = FailingStorage(MemoryStorage())
      try body(
        Subject(
          storage, failing: { storage.fail($1 ? .diskFull : nil) },
          reopen: {
            storage.fail(nil)
            return storage
          }))
    case .simulated:
      let disk = SimulatedDisk()
      try body(
        Subject(
          disk, failing: { (($0 as? SimulatedDisk) ?? disk).setFull($1) },
          reopen: {
            disk.setFull(false)
            return disk
          }))
    case .sqlite:
      let directory = try TestDirectory()
      var device = try DeviceDirectory.create(
        at: directory.device, secrets: newSecrets(), initial: [])
      try body(
        Subject(
          device.storage,
          failing: {
            try ($0 as? SQLiteStorage)?
              .execute("PRAGMA max_page_count = \($1 ? 1 : 0x3fff_ffff)")
          },
          reopen: {
            try device.close()
            device = try DeviceDirectory.open(at: directory.device)
            #expect(!device.storage.isCopy)
            return device.storage
          }))
    }
  }
}
