import Kith

/// Results of libcurl (`CURLcode`).
enum CurlCode {
  static let outOfMemory: Int32 = 27
  static let aborted: Int32 = 42

  /// The failure of a transfer; nil if its answer came whole.
  static func failure(
    _ code: Int32, _ transfer: HTTPTransfer, _ origin: String
  ) -> CarrierFailure? {
    if transfer.isTooMuch {
      return CarrierFailure(.tooMuch, "An answer of \(origin) is longer than expected.")
    }
    switch code {
    case 0: return nil
    case _ where transfer.isRefused:
      return CarrierFailure(
        .untrusted, "\(origin) leads to an address of this computer or its link.")
    case 35, 51, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91:
      return CarrierFailure(
        .untrusted,
        "The TLS certificate of \(origin) is not trusted (libcurl \(code)); see whether it has "
          + "expired, or is for another host. If its authority is your own: kith carrier add "
          + "--only-here --authority-file FILE.")
    case 6:
      return CarrierFailure(.unreachable, "The host of \(origin) is not known to the resolver.")
    case 7, 28, 45:
      return CarrierFailure(
        .unreachable,
        "\(origin) cannot be reached (libcurl \(code)); see whether the address is right and the server runs."
      )
    case 16, 18, 42, 52, 55, 56, 92:
      return CarrierFailure(
        .unreachable, "The connection to \(origin) broke off (libcurl \(code)).")
    default:
      return CarrierFailure(
        .unexpected, "\(origin) gave an answer that is not HTTP (libcurl \(code)).")
    }
  }
}
