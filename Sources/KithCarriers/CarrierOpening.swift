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
/// - Throws: ``CarrierFailure`` with `unexpected` for another kind or a malformed address, `untrusted` or
///   `denied` as ``storage(at:credentials:options:)`` does.
@Sendable public func openCarrier(
  _ settings: CarrierSettings
) throws(CarrierFailure) -> any CarrierStorage {
  guard let kind = CarrierAddress.Kind(rawValue: settings.kind) else {
    let kinds = CarrierAddress.Kind.allCases.map(\.rawValue).joined(separator: ", ")
    throw CarrierFailure(.unexpected, "This program knows only carriers of these kinds: \(kinds).")
  }
  let address: CarrierAddress
  do throws(CarrierAddressFailure) {
    address = try CarrierAddress(kind, settings.location)
  } catch {
    throw CarrierFailure(.unexpected, error.message)
  }
  let credentials: CarrierCredentials
  do throws(CarrierCredentialsFailure) {
    credentials = try CarrierCredentials(
      parsing: Array((settings.credentials ?? "").utf8), for: kind)
  } catch {
    throw CarrierFailure(.denied, error.message)
  }
  return try storage(
    at: address, credentials: credentials,
    options: CarrierOptions(
      authorityFile: settings.authorityFile, allowsLocal: !settings.isShared))
}
