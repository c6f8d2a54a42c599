package import KithCore
internal import KithCrypto

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
