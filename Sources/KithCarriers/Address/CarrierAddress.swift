/// The storage that a carrier uses: its kind, and its path or URL.
///
/// It holds no secret: see ``CarrierCredentials``.
public struct CarrierAddress: Hashable, Sendable, CustomStringConvertible {
  /// The kinds of storage, by their names on the command line.
  public enum Kind: String, CaseIterable, Sendable {
    case folder
    case webdav
    case s3
  }

  /// The kind of storage.
  public let kind: Kind

  /// An absolute path, or a URL in its normal form.
  ///
  /// | kind | form |
  /// | --- | --- |
  /// | folder | `/PATH` |
  /// | webdav | `https://HOST[:PORT]/PATH` |
  /// | s3 | `https://ENDPOINT/BUCKET[/PREFIX][?region=R][&style=host]` |
  public let location: String

  /// The parts of the URL; nil for a folder.
  let url: WebAddress?
  /// The parts of an S3 URL; nil for other kinds.
  let bucket: BucketAddress?

  /// Parses a location as a person or another device gave it.
  ///
  /// - Throws: If it is none, or has a user or password in it.
  public init(_ kind: Kind, _ location: String) throws(CarrierAddressFailure) {
    guard location.utf8.count <= CarrierLimits.addressBytes else {
      throw CarrierAddressFailure(
        .tooLong, "An address has at most \(CarrierLimits.addressBytes) bytes.")
    }
    self.kind = kind
    switch kind {
    case .folder:
      self.location = try Self.folder(location)
      url = nil
      bucket = nil
    case .webdav:
      let url = try WebAddress(location)
      guard url.query.isEmpty else {
        throw CarrierAddressFailure(.malformed, "A WebDAV address has no “?”.")
      }
      self.location = url.text
      self.url = url
      bucket = nil
    case .s3:
      let url = try WebAddress(location)
      self.url = url
      bucket = try BucketAddress(url)
      self.location = url.text
    }
  }

  /// Whether other devices of the account can use it too.
  public var isShareable: Bool { kind != .folder }

  /// The reason why a device does not use an address that came from another device; nil if it does.
  ///
  /// Such an address could make this device send requests to services of its own network.
  public var refusalFromAccount: CarrierAddressFailure? {
    guard let url else {
      return CarrierAddressFailure(.notShareable, "A folder is not shared with other devices.")
    }
    guard url.isSecure else {
      return CarrierAddressFailure(.notSecure, "An address from another device begins with https.")
    }
    guard !HostRules.isLocal(url.host) else {
      return CarrierAddressFailure(
        .local,
        "The host “\(url.host)” of an address from another device is on this computer or link.")
    }
    return nil
  }

  /// The kind and the location, as `kith carrier add` takes them.
  public var description: String { "\(kind.rawValue) \(location)" }

  /// Whether kind and location are the same.
  public static func == (one: Self, other: Self) -> Bool {
    one.kind == other.kind && one.location == other.location
  }

  /// Hashes the kind and the location.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(location)
  }

  private static func folder(_ path: String) throws(CarrierAddressFailure) -> String {
    guard path.hasPrefix("/") else {
      throw CarrierAddressFailure(.malformed, "A folder's path begins with “/”.")
    }
    guard !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw CarrierAddressFailure(.malformed, "A folder's path has no control characters.")
    }
    let names = path.split(separator: "/")
    guard !names.contains(".."), !names.contains(".") else {
      throw CarrierAddressFailure(.malformed, "A folder's path has no “.” or “..”.")
    }
    guard !names.isEmpty else {
      throw CarrierAddressFailure(.malformed, "The root directory cannot be a carrier.")
    }
    return "/" + names.joined(separator: "/")
  }
}

/// The reason why an address is refused.
public struct CarrierAddressFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// A struct, so that a new code breaks no program.
  public struct Code: Hashable, Sendable {
    private let name: String

    /// It is no address of this kind.
    public static let malformed = Code(name: "malformed")
    /// It has too many bytes.
    public static let tooLong = Code(name: "tooLong")
    /// It has a user or a password in it.
    public static let holdsSecret = Code(name: "holdsSecret")
    /// It came from another device and is a folder.
    public static let notShareable = Code(name: "notShareable")
    /// It came from another device and is not https.
    public static let notSecure = Code(name: "notSecure")
    /// It came from another device and leads to this computer or its link.
    public static let local = Code(name: "local")
  }

  /// The kind of failure, for programs.
  public var code: Code
  /// One sentence that says what is wrong.
  public var message: String

  init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The message.
  public var description: String { message }
}
