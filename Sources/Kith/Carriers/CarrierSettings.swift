package import KithCore
internal import KithCrypto
internal import KithStorage
internal import Synchronization

/// One of a device's carriers: which storage, and how to sign in to it.
public struct CarrierSettings: Codable, Hashable, Sendable {
  /// The kind: `folder`, `webdav`, `s3`, or one of a program's own, of 1 to 16 lower-case letters and
  /// digits.
  public var kind: String
  /// The path or URL.
  public var location: String
  /// The text with which to sign in, as a file of credentials has it; nil: none is needed.
  public var credentials: String?
  /// A file with the certificates of authorities (PEM) that are trusted instead of the system's; nil:
  /// the system's. Only of a carrier that is not shared.
  public var authorityFile: String?
  /// Whether the account's other devices use it too.
  public var isShared: Bool

  /// Makes settings.
  public init(
    kind: String, location: String, credentials: String? = nil, authorityFile: String? = nil,
    isShared: Bool = false
  ) {
    self.kind = kind
    self.location = location
    self.credentials = credentials
    self.authorityFile = authorityFile
    self.isShared = isShared
  }

  /// The store with the account's carriers, by ``id``. The command line and the page show no value of
  /// stores whose names begin with `kith.`.
  package static let store = "kith.carriers"

  /// The value of its key in ``store``.
  package var value: PropertyListValue {
    var members: [String: PropertyListValue] = [
      "kind": .string(kind), "location": .string(location),
    ]
    if let credentials { members["credentials"] = .string(credentials) }
    return .dictionary(members)
  }

  /// The longest kind, in bytes.
  private static let longestKind = 16

  /// Whether a kind is a short word of lower-case letters and digits. Others may be meant for the
  /// terminals of those who look.
  static func isKind(_ text: String) -> Bool {
    (1...longestKind).contains(text.utf8.count)
      && text.utf8.allSatisfy {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
      }
  }

  /// Leaves out what is no carrier.
  package static func shared(in values: [Key: PropertyListValue]) -> [CarrierSettings] {
    values.compactMap { key, value in
      guard case .dictionary(let members) = value, case .string(let kind)? = members["kind"],
        case .string(let location)? = members["location"], isKind(kind)
      else { return nil }
      var settings = CarrierSettings(kind: kind, location: location, isShared: true)
      if case .string(let text)? = members["credentials"] { settings.credentials = text }
      return settings.id.description == key.text ? settings : nil
    }
  }

  /// Tells it from the device's other carriers.
  package var id: CarrierID {
    let bytes = Blake2b.digest256(
      Array("kith carrier v1".utf8) + [0], Array(kind.utf8) + [0], Array(location.utf8)
    ).bytes.prefix(16)
    guard let digest = try? Digest128(bytes) else { preconditionFailure("it has 16 bytes") }
    return CarrierID(digest)
  }
}

/// Opens the storage of a carrier. `KithCarriers` has one for folders, WebDAV and S3.
public typealias CarrierOpener =
  @Sendable (_ settings: CarrierSettings) throws(CarrierFailure) -> any CarrierStorage

/// The carriers that only this device uses, with their credentials. The database keeps them, sealed.
final class CarrierList: Sendable {
  /// The most carriers of a device's own. It uses fewer (`Limits.carriers`); the others wait until one
  /// is removed.
  static let limit = 16
  /// Of the carriers above the limit, a status names so many: a member may name ever new ones.
  static let mostUnusedShown = 16

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

  /// The carriers that the device uses: the first. So no other device keeps it from its own.
  func inUse(beside shared: [CarrierSettings]) -> [CarrierSettings] {
    Array(known(beside: shared).prefix(Limits.carriers))
  }

  /// Adds one, or replaces its settings. Durable on return; blocks meanwhile. Throws `valueTooLarge` if
  /// the list is full.
  func keep(_ settings: CarrierSettings) throws(KithError) {
    try change { (list) throws(KithError) in
      if let index = list.firstIndex(where: { $0.id == settings.id }) {
        list[index] = settings
        return
      }
      guard list.count < Self.limit else {
        throw KithError(
          .valueTooLarge,
          "This device has \(Self.limit) carriers of its own, as many as it keeps. Remove one first: "
            + "kith carrier remove.")
      }
      list.append(settings)
    }
  }

  /// Durable on return; blocks meanwhile.
  func remove(_ id: CarrierID) throws(KithError) {
    try change { (list) throws(KithError) in list.removeAll { $0.id == id } }
  }

  private func change(
    _ body: (inout [CarrierSettings]) throws(KithError) -> Void
  ) throws(KithError) {
    // Under the lock, so that of two changes none is lost.
    try own.withLock { own throws(KithError) in
      var list = own
      try body(&list)
      guard let encoded = try? EncodedValue(PropertyListValue(encoding: list)) else {
        preconditionFailure("settings are text and one bool")
      }
      try KithError.mapping(storage.setCarriers(encoded.bytes))
      own = list
    }
  }
}

extension Node {
  /// This device's own carriers, then the account's.
  var knownCarriers: [CarrierSettings] { carrierList.known(beside: engine.sharedCarriers) }

  /// Adds a carrier, or replaces its settings. Durable on return.
  func keep(_ settings: CarrierSettings) async throws(KithError) {
    try await change(settings, to: settings.value) { () throws(KithError) in
      try self.carrierList.keep(settings)
    }
  }

  /// Durable on return. The core forgets its objects: a running node's runner has it do so.
  func remove(_ settings: CarrierSettings) async throws(KithError) {
    try await change(settings, to: nil) { () throws(KithError) in
      try self.carrierList.remove(settings.id)
    }
    guard carriers.withLock({ $0 == nil }),
      !knownCarriers.contains(where: { $0.id == settings.id })
    else { return }
    engine.input(.carrier(settings.id, .removed))
  }

  private func change(
    _ settings: CarrierSettings, to value: PropertyListValue?,
    _ own: @escaping @Sendable () throws(KithError) -> Void
  ) async throws(KithError) {
    if settings.isShared {
      let key = settings.id.description
      return try await write([(key, value)], in: CarrierSettings.store)
    }
    try await BlockingThread.run(own)
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
