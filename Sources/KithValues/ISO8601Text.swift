package import FoundationEssentials

/// Dates as ISO 8601 text, exact to the last bit: seconds are never floating-point arithmetic.
package enum ISO8601Text {
  /// Returns the date in UTC, such as `2026-11-21T10:00:00.123Z`, with enough decimals to restore
  /// its bits. Nil for a date that is not finite, outside the years 1 to 9999, negative zero, or
  /// less than a ten-thousandth of a second from the reference date.
  package static func text(_ date: Date) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard seconds.isFinite, seconds != 0 || seconds.sign == .plus else { return nil }
    let parts = seconds.magnitude.description.split(separator: ".")
    guard parts.count == 2, var whole = Int(parts[0]) else { return nil }
    var fraction = parts[1] == "0" ? "" : String(parts[1])
    guard fraction.allSatisfy(\.isWholeNumber) else { return nil }
    if seconds < 0 {
      whole = fraction.isEmpty ? -whole : -whole - 1
      fraction = complement(fraction)
    }
    guard (earliest...latest).contains(whole) else { return nil }
    let day = Int((Double(whole) / 86_400).rounded(.down))
    let second = whole - day * 86_400
    let (year, month, dayOfMonth) = civil(fromDay: day + daysTo2001)
    let date = [year.digits(4), month.digits(2), dayOfMonth.digits(2)].joined(separator: "-")
    let time = [second / 3_600, second / 60 % 60, second % 60].map { $0.digits(2) }
    return date + "T" + time.joined(separator: ":") + (fraction.isEmpty ? "" : "." + fraction) + "Z"
  }

  /// Reads `2026-11-21`, `2026-11-21T10:00`, `2026-11-21T10:00:00.123Z` or the same with an offset
  /// such as `+01:00` or `+01`; the default is UTC. Nil also for a date of which a double would lose
  /// decimals.
  package static func date(_ text: String) -> Date? {
    let pattern =
      #/
      (\d{4}) - (\d\d) - (\d\d)
      (?: [Tt\ ] (\d\d) : (\d\d) (?: : (\d\d) (?: [.,] (\d{1,20}) )? )?
        (?: [Zz] | ([+\-]) (\d\d) (?: :? (\d\d) )? )? )?
      /#
      .asciiOnlyDigits()
    guard let match = text.wholeMatch(of: pattern)?.output else { return nil }
    guard let year = Int(match.1), let month = Int(match.2), let day = Int(match.3), year >= 1
    else { return nil }
    let days = dayNumber(year: year, month: month, day: day)
    // Of a month or day that does not exist, the number is another date's.
    guard civil(fromDay: days) == (year, month, day) else { return nil }
    let number = { (text: Substring?) -> Int in text.flatMap { Int($0) } ?? 0 }
    let (hour, minute, second) = (number(match.4), number(match.5), number(match.6))
    let (offsetHours, offsetMinutes) = (number(match.9), number(match.10))
    guard hour < 24, minute < 60, second < 60, offsetHours < 24, offsetMinutes < 60 else {
      return nil
    }
    let offset = (offsetHours * 3_600 + offsetMinutes * 60) * (match.8 == "-" ? -1 : 1)
    let whole = (days - daysTo2001) * 86_400 + hour * 3_600 + minute * 60 + second - offset
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
    let text = "\(sign)\(whole).\(fraction.isEmpty ? "0" : fraction)"
    guard let seconds = Double(text), seconds.keeps(text) else { return nil }
    return Date(timeIntervalSinceReferenceDate: seconds)
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

// The Gregorian calendar. Days count from 0000-03-01, so that a leap day is the last of its year
// (Howard Hinnant, "chrono-compatible low-level date algorithms"). The C library's gmtime counts
// leap seconds on hosts whose zone is one of right/…, so the same date would have two texts.
extension ISO8601Text {
  private static let daysTo2001 = dayNumber(year: 2001, month: 1, day: 1)
  private static let earliest = (dayNumber(year: 1, month: 1, day: 1) - daysTo2001) * 86_400
  private static let latest = (dayNumber(year: 10_000, month: 1, day: 1) - daysTo2001) * 86_400 - 1

  private static func dayNumber(year: Int, month: Int, day: Int) -> Int {
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
  }

  private static func civil(fromDay day: Int) -> (year: Int, month: Int, day: Int) {
    let era = (day >= 0 ? day : day - 146_096) / 146_097
    let dayOfEra = day - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }
}
