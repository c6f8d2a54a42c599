internal import KithCrypto

/// The latest statement held of each store and device.
struct StatementTable {
  private struct Held {
    var statement: Statement
    var change: UInt64
    /// When it was taken in, by the monotonic clock.
    var at: UInt64
  }

  private var held: [StoreIdentifier: [DeviceID: Held]] = [:]
  private var digests: [StoreIdentifier: Digest128] = [:]
  private(set) var count = 0
  /// Counts the statements taken in.
  private(set) var changes: UInt64 = 0

  subscript(store: StoreIdentifier, device: DeviceID) -> Statement? {
    held[store]?[device]?.statement
  }

  /// The statements taken in after a number of ``changes``, in no order.
  func statements(of store: StoreIdentifier, after change: UInt64 = 0) -> [Statement] {
    (held[store] ?? [:]).values.lazy.filter { $0.change > change }.map(\.statement)
  }

  var stores: some Sequence<StoreIdentifier> { held.keys }

  /// Whether a statement of this age is later than the one held, or of a process that replaces that
  /// one's.
  func takes(
    _ age: StatementAge, of device: DeviceID, _ store: StoreIdentifier,
    replacing isReplaced: (Coverage.HeardProcess, HybridTime) -> Bool
  ) -> Bool {
    guard let held = held[store]?[device] else { return true }
    let process = Coverage.HeardProcess(started: held.statement.age.started, at: held.at)
    return held.statement.age < age || isReplaced(process, age.started)
  }

  /// Replaces the device's statement. Returns false if the new one is not taken, or has no space.
  mutating func insert(
    _ statement: Statement, at now: UInt64,
    replacing isReplaced: (Coverage.HeardProcess, HybridTime) -> Bool = { _, _ in false }
  ) -> Bool {
    let old = self[statement.store, statement.device]
    guard takes(statement.age, of: statement.device, statement.store, replacing: isReplaced),
      old != nil || count < Limits.statements
    else { return false }
    changes += 1
    held[statement.store, default: [:]][statement.device] = Held(
      statement: statement, change: changes, at: now)
    digests[statement.store] = nil
    if old == nil { count += 1 }
    return true
  }

  mutating func keep(only isMember: (DeviceID) -> Bool) {
    for (store, devices) in held where !devices.keys.allSatisfy(isMember) {
      held[store] = devices.filter { isMember($0.key) }
      digests[store] = nil
    }
    count = held.values.reduce(0) { $0 + $1.count }
  }

  /// The digest by which peers compare held statements (`Docs/Protocol/statements.md`).
  ///
  /// - Complexity: O(*n* log *n*) in the devices after a change.
  mutating func digest(of store: StoreIdentifier) -> Digest128 {
    if let digest = digests[store] { return digest }
    var hasher = Blake2b.Hasher()
    for statement in statements(of: store).sorted(by: { $0.device < $1.device }) {
      hasher.update(statement.device)
      hasher.update(statement.age.started.rawValue.bigEndianBytes)
      hasher.update(statement.age.number.bigEndianBytes)
    }
    let bytes = hasher.digest256().bytes.prefix(16)
    guard let digest = try? Digest128(bytes) else { preconditionFailure("it has 16 bytes") }
    digests[store] = digest
    return digest
  }
}
