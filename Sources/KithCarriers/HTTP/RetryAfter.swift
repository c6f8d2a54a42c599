import Glibc

/// The header `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// The wait that a server asks for, at most ``CarrierLimits/retryAfter``; nil if it is neither a
  /// number of seconds nor a date. `now` is in seconds since 1970.
  static func parse(_ text: String, now: Int) -> Duration? {
    if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
      // A number that does not fit is longer than any limit.
      return Int(text).map { min(.seconds($0), CarrierLimits.retryAfter) }
        ?? CarrierLimits.retryAfter
    }
    return seconds(ofDate: text).map {
      min(.seconds(max(0, $0 - now)), CarrierLimits.retryAfter)
    }
  }

  /// Seconds since 1970 of a date as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that servers may
  /// send.
  private static func seconds(ofDate text: String) -> Int? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 6, parts[0].last == ",", parts[5] == "GMT",
      let day = number(parts[1], 1...31), let month = months.firstIndex(of: String(parts[2])),
      let year = number(parts[3], 1970...9999)
    else { return nil }
    let clock = parts[4].split(separator: ":", omittingEmptySubsequences: false)
    guard clock.count == 3, let hour = number(clock[0], 0...23),
      let minute = number(clock[1], 0...59), let second = number(clock[2], 0...60)
    else { return nil }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (Int32(year - 1900), Int32(month), Int32(day))
    (date.tm_hour, date.tm_min, date.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
    return timegm(&date)
  }

  private static func number(_ text: Substring, _ range: ClosedRange<Int>) -> Int? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else {
      return nil
    }
    return range.contains(number) ? number : nil
  }
}
