package import KithCore
internal import KithCrypto
internal import KithStorage

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// One of a device's carriers: which storage, and how to sign in to it.
public struct CarrierSettings: Codable, Hashable, Sendable {
  /// The kind: `folder`, `webdav`, `s3`, or one of a program's own.
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

/// The carriers of a device: those of the account, in a store that all devices share, and those of
/// this device alone, in a file of its directory.
package enum CarrierList {
  /// The account's carriers, by ``CarrierSettings/id``. The command line and the page show no value of
  /// stores whose names begin with `kith.`.
  package static let store = "kith.carriers"

  /// The most that a device uses: the first by id.
  package static var limit: Int { Limits.carriers }

  private static let largestFile = 1 << 20

  // MARK: The account's

  package static func value(of settings: CarrierSettings) -> PropertyListValue {
    var members: [String: PropertyListValue] = [
      "kind": .string(settings.kind), "location": .string(settings.location),
    ]
    if let credentials = settings.credentials { members["credentials"] = .string(credentials) }
    return .dictionary(members)
  }

  /// Leaves out what is no carrier.
  package static func shared(in values: [Key: PropertyListValue]) -> [CarrierSettings] {
    values.compactMap { key, value in
      guard case .dictionary(let members) = value, case .string(let kind)? = members["kind"],
        case .string(let location)? = members["location"]
      else { return nil }
      var settings = CarrierSettings(kind: kind, location: location, isShared: true)
      if case .string(let text)? = members["credentials"] { settings.credentials = text }
      return settings.id.description == key.text ? settings : nil
    }
  }

  // MARK: This device's

  package static func own(in directory: String) throws(KithError) -> [CarrierSettings] {
    let path = DeviceDirectory.carriersPath(directory)
    let bytes = try KithError.mapping { () throws(StorageError) in
      try SmallFile.read(path, atMost: largestFile)
    }
    guard let bytes else { return [] }
    do {
      return try JSONDecoder().decode([CarrierSettings].self, from: Data(bytes))
    } catch {
      throw KithError(
        .damaged, "The list of carriers cannot be read: \(error). Mend or remove it.", path: path,
        cause: error)
    }
  }

  /// Writes the file of mode 0600. Durable on return.
  package static func keep(
    _ carriers: [CarrierSettings], in directory: String
  ) throws(KithError) {
    let path = DeviceDirectory.carriersPath(directory)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    guard let data = try? encoder.encode(carriers) else {
      throw KithError(.inputOutput, "The list of carriers cannot be written as JSON.", path: path)
    }
    try KithError.mapping { () throws(StorageError) in
      try SmallFile.replace(path, with: Array(data))
    }
  }

  /// All carriers in use, by id; those beyond the limit are left out.
  static func all(
    own: [CarrierSettings], shared: [CarrierSettings]
  ) -> [CarrierSettings] {
    var all: [CarrierID: CarrierSettings] = [:]
    for settings in shared + own { all[settings.id] = settings }
    return all.sorted { $0.key < $1.key }.prefix(limit).map(\.value)
  }
}
