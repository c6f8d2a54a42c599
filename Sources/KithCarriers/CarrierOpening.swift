public import Kith

/// Opens the storage of a carrier: a folder, a WebDAV collection or an S3 bucket.
///
/// ```swift
/// var configuration = Accounts.Configuration()
/// configuration.carriers = openCarrier
/// let accounts = try Accounts(configuration)
/// ```
/// An address that came from another device is used only with https, and only if its host is not on
/// this computer or its link.
///
/// It sends nothing yet. A program gives it settings of its own to try a storage, or to wrap it.
///
/// - Throws: `CarrierFailure`: `unexpected` for a kind that is not known or a malformed address, `denied`
///   for credentials of another kind or that may not be sent there, `untrusted` for an address that
///   another device may not give.
@Sendable public func openCarrier(
  _ settings: CarrierSettings
) throws(CarrierFailure) -> any CarrierStorage {
  guard let kind = CarrierAddress.Kind(rawValue: settings.kind) else {
    let kinds = CarrierAddress.Kind.allCases.map(\.rawValue).joined(separator: ", ")
    throw CarrierFailure(.unexpected, "This program knows only carriers of these kinds: \(kinds).")
  }
  return try storage(
    at: CarrierAddress(kind, settings.location),
    credentials: CarrierCredentials(parsing: Array((settings.credentials ?? "").utf8), for: kind),
    options: CarrierOptions(
      authorityFile: settings.authorityFile, allowsLocal: !settings.isShared))
}

/// The storage of an address, with credentials that fit it.
func storage(
  at address: CarrierAddress, credentials: CarrierCredentials, options: CarrierOptions = .init()
) throws(CarrierFailure) -> any CarrierStorage {
  if !options.allowsLocal, let refusal = address.refusalFromAccount { throw refusal }
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

/// Settings of a carrier that are not part of its address.
struct CarrierOptions {
  /// A file with certificates of authorities (PEM) that are trusted instead of the system's.
  var authorityFile: String?
  /// Whether addresses of this computer and its link may be connected to. False for an address that
  /// came from another device: then the addresses that its host resolves to are checked as well.
  var allowsLocal = true

  /// Time without a byte, after which an operation ends. Shorter in tests.
  var quiet = CarrierLimits.quiet
  var longest = CarrierLimits.longest
}
