import Foundation
import Glibc
import KithCore
import KithTestSupport
import Synchronization
import Testing

@testable import KithStorage

/// Between the write of a commit and its sync (`Docs/Decisions/early-sending.md`).
@Suite struct WrittenCommitTests {
  private let store = MutationSource.stores[0]

  private func draft(_ number: UInt64, bytes: Int = 9_000) -> [Mutation] {
    [
      .put(
        .store(store, .draft(number)),
        [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes))
    ]
  }

  private func stored(_ snapshot: Snapshot) -> Set<UInt64> {
    Set((snapshot.stores[store]?.drafts ?? [:]).keys)
  }

  @Test(arguments: Backend.allCases)
  func `every commit is told once, when it is written`(backend: Backend) throws {
    try backend.withSubject { subject in
      for number in 1...5 as ClosedRange<UInt64> {
        let calls = Atomic(0)
        try subject.storage.commit(draft(number)) { calls.add(1, ordering: .relaxed) }
        let count = calls.load(ordering: .relaxed)
        #expect(count == 1, "commit \(number)")
      }
      #expect(try stored(subject.reload()) == [1, 2, 3, 4, 5])
    }
  }

  @Test(arguments: Backend.allCases)
  func `a commit that cannot be written is not told`(backend: Backend) throws {
    try backend.withSubject { subject in
      try subject.storage.commit(draft(1))
      try subject.setFailing(true)
      let calls = Atomic(0)
      #expect(throws: StorageError.self) {
        // More than fits into the pages that the file has.
        try subject.storage.commit(draft(2, bytes: 400_000)) { calls.add(1, ordering: .relaxed) }
      }
      let count = calls.load(ordering: .relaxed)
      #expect(count == 0)
      #expect(!subject.storage.isCopy)
      try subject.setFailing(false)
      #expect(try stored(subject.storage.load()) == [1])
    }
  }

  /// Also over checkpoints and when the log begins anew.
  @Test func `what is told is in the files, whole, and survives the process`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    let copies = directory.child("copies")
    let restarts = Mutex<Set<Data>>([])
    for number in 1...60 as ClosedRange<UInt64> {
      if number.isMultiple(of: 7) { try device.storage.execute("PRAGMA wal_checkpoint(RESTART)") }
      if number.isMultiple(of: 23) { try device.storage.execute(Schema.emptyingLog) }
      // Some spill pages into the log before they are committed.
      let bytes = number.isMultiple(of: 10) ? 6 << 20 : 9_000
      let copy = "\(copies)\(number)"
      try device.storage.commit(draft(number, bytes: bytes)) {
        try? FileManager.default.copyItem(atPath: directory.device, toPath: copy)
        let log = FileManager.default.contents(atPath: copy + "/kith.sqlite-wal") ?? Data()
        restarts.withLock { _ = $0.insert(log.prefix(24)) }
      }
      // If spilled pages change again, SQLite writes the frame that ends the commit otherwise.
      if bytes > 9_000, !FileManager.default.fileExists(atPath: copy) { continue }
      let found = try DeviceDirectory.open(at: copy)
      #expect(try stored(found.storage.load()) == Set(1...number), "commit \(number)")
      try found.close()
      try FileManager.default.removeItem(atPath: copy)
    }
    #expect(restarts.withLock { $0.count } > 5, "the log began anew")
    try device.close()
  }

  @Test func `a commit that fails at the sync leaves nothing, and makes a copy`() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [])
    try device.storage.commit(draft(1))
    let log = try #require(descriptor(of: "kith.sqlite-wal", in: directory.device))
    let kept = dup(log)
    defer { close(kept) }
    let isCalled = Atomic(false)
    func fail(_ mutations: [Mutation]) {
      #expect(throws: StorageError.self) {
        try device.storage.commit(mutations) {
          isCalled.store(true, ordering: .relaxed)
          // It cannot be synced.
          let null = open("/dev/null", O_RDWR | O_CLOEXEC)
          dup2(null, log)
          close(null)
        }
      }
      dup2(kept, log)
    }
    fail(draft(2))
    let wasCalled = isCalled.load(ordering: .relaxed)
    #expect(wasCalled)
    #expect(device.storage.isCopy)
    #expect(try stored(device.storage.load()) == [1])
    // The new incarnation fails; then a commit that does not go through the shell ends no copy.
    fail([.put(.incarnation, [UInt8](repeating: 2, count: 8))])
    try device.storage.commit(draft(3))
    #expect(device.storage.isCopy)
    try device.close()
    // The next process knows it too, until a new incarnation.
    let again = try DeviceDirectory.open(at: directory.device)
    #expect(try stored(again.storage.load()) == [1, 3])
    #expect(again.storage.isCopy)
    try again.storage.commit([.put(.incarnation, [UInt8](repeating: 1, count: 8))])
    #expect(!again.storage.isCopy)
    try again.close()
    let last = try DeviceDirectory.open(at: directory.device)
    #expect(!last.storage.isCopy)
    try last.close()
  }

  private func descriptor(of name: String, in directory: String) -> Int32? {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return all.compactMap(Int32.init).first { number in
      let path = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(number)")
      return path?.hasPrefix(directory) == true && path?.hasSuffix("/" + name) == true
    }
  }
}
