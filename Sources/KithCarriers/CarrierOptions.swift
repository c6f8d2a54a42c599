public import Kith

/// Settings of a carrier that are not part of its address.
public struct CarrierOptions: Hashable, Sendable {
  /// A file with certificates of authorities (PEM) that are trusted instead of the system's.
  public var authorityFile: String?
  /// Whether addresses of this computer and its link may be connected to. False for an address that
  /// came from another device: then the addresses that its host resolves to are checked as well.
  public var allowsLocal: Bool

  /// Time without a byte, after which an operation ends. Shorter in tests.
  var quiet = CarrierLimits.quiet
  var longest = CarrierLimits.longest

  /// Settings for an address that a person gave on this device.
  public init(authorityFile: String? = nil, allowsLocal: Bool = true) {
    self.authorityFile = authorityFile
    self.allowsLocal = allowsLocal
  }
}

/// Makes the storage of an address. It sends nothing yet.
///
/// - Throws: ``CarrierFailure/Code/denied`` for credentials of another kind, or that may not be sent to
///   this address; ``CarrierFailure/Code/untrusted`` for an address that the options refuse.
public func storage(
  at address: CarrierAddress, credentials: CarrierCredentials, options: CarrierOptions = .init()
) throws(CarrierFailure) -> any CarrierStorage {
  if !options.allowsLocal, let refusal = address.refusalFromAccount {
    throw CarrierFailure(.untrusted, refusal.message)
  }
  switch (address.kind, address.url, address.bucket, credentials) {
  case (.folder, _, _, .none):
    return FolderCarrier(path: address.location, quiet: options.quiet)
  case (.webdav, let url?, _, .none), (.webdav, let url?, _, .password),
    (.webdav, let url?, _, .bearer):
    return try WebDAVCarrier(url, credentials, options)
  case (.s3, _, let bucket?, .none), (.s3, _, let bucket?, .s3):
    return S3Carrier(bucket, credentials, options)
  default:
    throw CarrierFailure(
      .denied, "\(credentials) cannot sign in to a carrier of kind \(address.kind.rawValue).")
  }
}
