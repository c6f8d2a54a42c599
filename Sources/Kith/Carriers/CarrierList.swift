internal import KithCore
internal import KithStorage
internal import Synchronization

/// The carriers that only this device uses, with their credentials. The database keeps them, sealed.
final class CarrierList: Sendable {
  private let storage: SQLiteStorage
  private let own = Mutex<[CarrierSettings]>([])

  init(_ storage: SQLiteStorage) { self.storage = storage }

  /// Reads the list from the database. `damaged`: it is lost, and the next change writes a new one.
  func load() throws(StorageError) {
    guard let bytes = try storage.carriers() else { return }
    guard
      let list = try? EncodedValue(trusting: bytes).decoded().decoded(as: [CarrierSettings].self)
    else {
      throw StorageError(
        code: .damaged, path: storage.path,
        message: "the list of this device's own carriers is malformed")
    }
    own.withLock { $0 = list }
  }

  /// The device's own carriers, then the account's, each by id. One that is in both is the device's own.
  func known(beside shared: [CarrierSettings]) -> [CarrierSettings] {
    let own = own.withLock { $0 }
    let ids = Set(own.map(\.id))
    return own.sorted { $0.id < $1.id }
      + shared.filter { !ids.contains($0.id) }.sorted { $0.id < $1.id }
  }

  /// Those that the device uses: the first. So no other device keeps it from its own.
  func inUse(beside shared: [CarrierSettings]) -> [CarrierSettings] {
    Array(known(beside: shared).prefix(Limits.carriers))
  }

  /// Adds one, or replaces its settings. Durable on return; blocks meanwhile.
  func keep(_ settings: CarrierSettings) throws(StorageError) {
    try change { list in
      list.removeAll { $0.id == settings.id }
      list.append(settings)
    }
  }

  /// Durable on return; blocks meanwhile.
  func remove(_ id: CarrierID) throws(StorageError) {
    try change { $0.removeAll { $0.id == id } }
  }

  private func change(_ body: (inout [CarrierSettings]) -> Void) throws(StorageError) {
    // Under the lock, so that of two changes none is lost.
    try own.withLock { own throws(StorageError) in
      var list = own
      body(&list)
      guard let encoded = try? EncodedValue(PropertyListValue(encoding: list)) else {
        preconditionFailure("settings are text and one bool")
      }
      try storage.setCarriers(encoded.bytes)
      own = list
    }
  }
}

extension Node {
  /// This device's own carriers, then the account's.
  var knownCarriers: [CarrierSettings] { carrierList.known(beside: engine.sharedCarriers) }

  /// Adds a carrier, or replaces its settings. Durable on return.
  func keep(_ settings: CarrierSettings) async throws(KithError) {
    try await change(settings, to: settings.value) { () throws(StorageError) in
      try self.carrierList.keep(settings)
    }
  }

  /// Durable on return. The core forgets its objects: a running node's runner has it do so.
  func remove(_ settings: CarrierSettings) async throws(KithError) {
    try await change(settings, to: nil) { () throws(StorageError) in
      try self.carrierList.remove(settings.id)
    }
    guard carriers.withLock({ $0 == nil }),
      !knownCarriers.contains(where: { $0.id == settings.id })
    else { return }
    engine.input(.carrier(settings.id, .removed))
  }

  private func change(
    _ settings: CarrierSettings, to value: PropertyListValue?,
    _ own: @escaping @Sendable () throws(StorageError) -> Void
  ) async throws(KithError) {
    if settings.isShared {
      let key = settings.id.description
      return try await write([(key, value)], in: CarrierSettings.store)
    }
    try await BlockingThread.run { () throws(KithError) in try KithError.mapping(own()) }
    engine.progress.raise()
  }
}

extension Engine {
  /// The account's carriers.
  var sharedCarriers: [CarrierSettings] {
    guard let store = StoreIdentifier(CarrierSettings.store) else { return [] }
    return CarrierSettings.shared(
      in: read { $0.view(of: store) }.compactMapValues { try? $0.decoded() })
  }
}
