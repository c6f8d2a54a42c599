import Foundation
import KithCore

/// Dates as ISO 8601 text, exact to the last bit: seconds are never floating-point arithmetic.
enum ISO8601Text {
  /// The reference date in the system's seconds, which count from 1970.
  private static let referenceSeconds = Int(Date.timeIntervalBetween1970AndReferenceDate)

  /// Returns the date in UTC, such as `2026-11-21T10:00:00.123Z`, with enough decimals to restore
  /// its bits. Nil for a date that is not finite, outside the years 1 to 9999, negative zero, or
  /// less than a ten-thousandth of a second from the reference date.
  static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard seconds.isFinite, seconds != 0 || seconds.sign == .plus else { return nil }
    let digits = seconds.magnitude.description.split(separator: ".")
    guard digits.count == 2, var whole = Int(digits[0]) else { return nil }
    var fraction = digits[1] == "0" ? "" : String(digits[1])
    guard fraction.allSatisfy(\.isWholeNumber) else { return nil }
    if seconds < 0 {
      whole = fraction.isEmpty ? -whole : -whole - 1
      fraction = complement(fraction)
    }
    var (second, parts) = (whole + referenceSeconds, tm())
    guard gmtime_r(&second, &parts) != nil, (1...9_999).contains(Int(parts.tm_year) + 1_900) else {
      return nil
    }
    let time = String(
      format: "%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1_900, parts.tm_mon + 1,
      parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec)
    return time + (fraction.isEmpty ? "" : "." + fraction) + "Z"
  }

  /// Reads `2026-11-21`, `2026-11-21T10:00`, `2026-11-21T10:00:00.123Z` or the same with an offset
  /// such as `+01:00`; the default is UTC.
  static func date(_ text: String) -> Date? {
    let pattern =
      #/
      (\d{4}) - (\d\d) - (\d\d)
      (?: [Tt\ ] (\d\d) : (\d\d) (?: : (\d\d) (?: [.,] (\d{1,20}) )? )?
        (?: [Zz] | ([+\-]) (\d\d) :? (\d\d) )? )?
      /#
      .asciiOnlyDigits()
    guard let match = text.wholeMatch(of: pattern)?.output else { return nil }
    let number = { (text: Substring?) -> Int32 in text.flatMap { Int32($0) } ?? 0 }
    let (year, month, day) = (number(match.1), number(match.2), number(match.3))
    let (hour, minute, second) = (number(match.4), number(match.5), number(match.6))
    let (offsetHours, offsetMinutes) = (number(match.9), number(match.10))
    guard year >= 1, hour < 24, minute < 60, second < 60, offsetHours < 24, offsetMinutes < 60
    else {
      return nil
    }
    let offset = Int(offsetHours * 3_600 + offsetMinutes * 60) * (match.8 == "-" ? -1 : 1)
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1_900, month - 1, day)
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
    let whole = timegm(&parts) - offset - referenceSeconds
    // A day that does not exist, such as 30 February, was made another date.
    guard parts.tm_mon == month - 1, parts.tm_mday == day else { return nil }
    return date(whole: whole, fraction: String(match.7 ?? ""))
  }

  private static func date(whole: Int, fraction: String) -> Date? {
    var (whole, fraction) = (whole, fraction)
    var sign = ""
    if whole < 0 {
      sign = "-"
      whole = -whole
      if fraction.contains(where: { $0 != "0" }) {
        whole -= 1
        fraction = complement(fraction)
      }
    }
    return Double("\(sign)\(whole).\(fraction.isEmpty ? "0" : fraction)")
      .map { Date(timeIntervalSinceReferenceDate: $0) }
  }

  /// Returns one minus a decimal fraction: `25` becomes `75`.
  private static func complement(_ fraction: String) -> String {
    var carry = 1
    let digits = fraction.reversed().map { character in
      let digit = 9 - (character.wholeNumberValue ?? 0) + carry
      carry = digit / 10
      return String(digit % 10)
    }
    return digits.reversed().joined()
  }
}
