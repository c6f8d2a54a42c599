internal import KithCrypto

/// The newest statement of every device about every store that came here.
struct StatementTable {
  private var held: [StoreIdentifier: [DeviceID: Statement]] = [:]
  private var digests: [StoreIdentifier: Digest256] = [:]
  private(set) var count = 0

  subscript(store: StoreIdentifier, device: DeviceID) -> Statement? { held[store]?[device] }

  /// The statements about a store, by device.
  func statements(of store: StoreIdentifier) -> [DeviceID: Statement] { held[store] ?? [:] }

  /// Keeps a statement in the place of the device's earlier one; false where there is no room.
  mutating func insert(_ statement: Statement) -> Bool {
    let isNew = held[statement.store]?[statement.device] == nil
    guard !isNew || count < Limits.statements else { return false }
    held[statement.store, default: [:]][statement.device] = statement
    digests[statement.store] = nil
    if isNew { count += 1 }
    return true
  }

  /// Forgets what devices that are no members said.
  mutating func keep(only isMember: (DeviceID) -> Bool) {
    for (store, devices) in held where !devices.keys.allSatisfy(isMember) {
      held[store] = devices.filter { isMember($0.key) }
      digests[store] = nil
    }
    count = held.values.reduce(0) { $0 + $1.count }
  }

  /// The digest by which peers see whether they hold the same: over the statements in the order of
  /// devices, of each the device's id and the clock as 64-bit big-endian.
  ///
  /// - Complexity: O(*n* log *n*) in the devices, when something changed since the last call.
  mutating func digest(of store: StoreIdentifier) -> Digest256 {
    if let digest = digests[store] { return digest }
    var hasher = Blake2b.Hasher()
    for (device, statement) in statements(of: store).sorted(by: { $0.key < $1.key }) {
      hasher.update(device)
      hasher.update(withUnsafeBytes(of: statement.clock.rawValue.bigEndian, Array.init))
    }
    let digest = hasher.digest256()
    digests[store] = digest
    return digest
  }
}

/// Names a device's statement about a store, whichever is the newest.
struct StatementName: Hashable, Comparable {
  var store: StoreIdentifier
  var device: DeviceID

  static func < (left: Self, right: Self) -> Bool {
    left.store != right.store ? left.store < right.store : left.device < right.device
  }
}
