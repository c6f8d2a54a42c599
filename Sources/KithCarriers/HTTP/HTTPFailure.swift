import Glibc
import Kith

extension CarrierFailure {
  /// The failure that an answer's status stands for, unless the protocol says more. `sent`: the bytes
  /// of the object that was put.
  init(
    _ answer: HTTPAnswer, from address: WebAddress, sent: Int? = nil, now: Int = Int(time(nil))
  ) {
    let (code, text): (Code, String) =
      switch answer.status {
      case 401, 403, 407:
        address.isSecure || HostRules.isLoopback(address.host)
          ? (
            .denied,
            "refuses the credentials; see whether they are right and may write (kith carrier password)"
          )
          : (
            .denied,
            "refuses to let this device in: without https a password goes only as a digest, which it "
              + "may not offer; use https"
          )
      case 301...308: (.untrusted, "sends elsewhere; give that address if it is right")
      case 404, 410: (.notThere, "has no such directory; see whether the address is right")
      case 408, 502, 504: (.unreachable, "does not answer in time; Kith tries again")
      case 413: (.full, Self.tooLarge(sent))
      case 507: (.full, "is full; free space on the storage")
      case 429, 503: (.busy, "asks to wait")
      default: (.unexpected, "gave an unexpected answer")
      }
    let wait =
      code == .busy ? answer.header("retry-after").flatMap { RetryAfter.parse($0, now: now) } : nil
    self.init(code, "\(address.origin) \(text) (status \(answer.status)).", retryAfter: wait)
  }
}

extension CarrierFailure {
  /// Of a server that takes no object of so many bytes.
  static func tooLarge(_ sent: Int?) -> String {
    "refuses objects of \(sent.map { "\($0) bytes" } ?? "this size"); let it take some of 16 MiB, such "
      + "as with client_max_body_size (nginx) or LimitRequestBody (Apache)"
  }

  /// `limit`: the most objects of the listing.
  init(_ error: XMLScanner.Malformed, inListingOf origin: String, limit: Int) {
    self =
      error.isTooMuch
      ? .tooMany(limit)
      : CarrierFailure(
        .unexpected, "\(origin) gave a listing that is not whole, at byte \(error.offset).")
  }

  static func tooMany(_ limit: Int) -> Self {
    CarrierFailure(
      .tooMuch,
      "The place holds more than \(limit) objects, or \(CarrierLimits.foreignMembers) other files.")
  }
}

extension HTTPAnswer {
  /// An object out of the answer to GET. The server must say where it ends, else one that broke off
  /// would look whole.
  func object(
    _ name: String, limit: Int, from address: WebAddress
  ) throws(CarrierFailure) -> [UInt8] {
    guard header("content-length") != nil || header("transfer-encoding") != nil else {
      throw CarrierFailure(
        .unexpected, "\(address.origin) does not say how long its answer is.")
    }
    guard body.count <= limit else {
      throw CarrierFailure(.tooMuch, "The object “\(name)” has more than \(limit) bytes.")
    }
    return body
  }
}
