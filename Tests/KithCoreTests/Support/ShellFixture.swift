import KithCrypto
import Testing

@testable import KithCore

/// A shell over a replica of one device, with a disk that fails when told to. The test is its driver.
struct ShellFixture {
  var shell: Shell
  let storage: MemoryStorage
  var now = Instant(wallMilliseconds: TestWorld.origin, monotonicMilliseconds: 1_000)
  private let account: AccountID
  private let keys: DeviceKeys
  private var lastWrite: UInt64 = 0

  static let full = StorageError(code: .diskFull, path: "/test", message: "on demand")
  static let other = StorageError(code: .readOnly, path: "/test", message: "on demand")

  init() throws {
    let device = try TestWorld(devices: 1, seed: 5).devices[0]
    account = device.replica.account
    keys = device.keys
    storage = MemoryStorage(device.disk)
    shell = Shell(try Self.replica(account, keys, storage))
    try take(.start(isCopy: false))
    try take(.open(TestWorld.store, .standard))
    drain()
  }

  private static func replica(
    _ account: AccountID, _ keys: DeviceKeys, _ storage: MemoryStorage
  ) throws -> Replica {
    try Replica(
      account: account, keys: keys, snapshot: storage.load(),
      process: ProcessID(Digest128 { _ in }), entropy: SeededEntropy(seed: 1))
  }

  func replica() throws -> Replica { try Self.replica(account, keys, storage) }

  mutating func advance(_ milliseconds: UInt64) {
    now.wallMilliseconds += milliseconds
    now.monotonicMilliseconds += milliseconds
  }

  /// Hands in an input that must be taken.
  @discardableResult
  mutating func take(_ input: Input, coalesces: Bool = false) throws -> [Effect] {
    guard case .handled(let effects) = shell.handle(input, coalesces: coalesces, at: now) else {
      throw Self.full
    }
    return effects
  }

  /// Writes a value and waits for its fate.
  mutating func write(
    _ key: String, _ value: PropertyListValue = 1, coalesces: Bool = false
  ) throws -> WriteID {
    lastWrite += 1
    let write = WriteID(rawValue: lastWrite)
    try take(.write(write, TestWorld.store, [set(key, value)]), coalesces: coalesces)
    shell.expect(write)
    return write
  }

  /// Takes the next piece of work, after the flush that it wants.
  mutating func next() -> Shell.Work {
    if shell.wantsFlush { _ = shell.handle(.flush, at: now) }
    return shell.next(at: now)
  }

  mutating func nextRound() throws -> Round {
    guard case .round(let round) = next() else { throw Self.full }
    return round
  }

  /// Does all work that can be done now.
  mutating func drain() {
    while true {
      switch next() {
      case .idle, .busy: return
      case .round(let round):
        do throws(StorageError) {
          try storage.commit(round.mutations)
          _ = shell.committed()
        } catch {
          _ = shell.failed(error, at: now)
        }
      case .reload: _ = try? reopen()
      }
    }
  }

  mutating func reopen() throws -> Shell.Aftermath {
    shell.reopen(try replica(), isCopy: storage.isCopy, at: now)
  }

  /// Lets a commit fail, and the replica be made anew.
  mutating func fail(_ error: StorageError = full) throws {
    _ = try write("failing \(lastWrite)")
    _ = try nextRound()
    _ = shell.failed(error, at: now)
    guard case .reload = next() else { throw Self.full }
    _ = try reopen()
  }

  var shown: [Key: EncodedValue] { shell.replica.view(of: TestWorld.store) }
}

func isSuccess(_ fate: Result<Void, Shell.Unavailable>?) -> Bool {
  if case .success = fate { true } else { false }
}

func failure(_ fate: Result<Void, Shell.Unavailable>?) -> Shell.Unavailable? {
  if case .failure(let error) = fate { error } else { nil }
}
