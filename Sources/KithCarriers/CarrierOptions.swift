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
