package enum Format {
  /// `812 B`, `14.2 KiB`, `1.0 MiB`.
  package static func bytes(_ count: Int) -> String {
    guard count.magnitude >= 1_024 else { return "\(count) B" }
    var amount = Double(count) / 1_024
    for unit in ["KiB", "MiB", "GiB"] {
      if amount.magnitude < 999.95 { return "\(decimals(amount, 1)) \(unit)" }
      amount /= 1_024
    }
    return "\(decimals(amount, 1)) TiB"
  }

  /// A number with separated thousands: `1,024`.
  package static func count(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0 && (digits.count - index).isMultiple(of: 3) { text += "," }
      text.append(digit)
    }
    return text
  }

  /// `1 key`, `264 keys`.
  package static func count(_ number: Int, _ thing: String) -> String {
    "\(count(number)) \(thing)\(number == 1 ? "" : "s")"
  }

  /// `87 ns`, `12.0 µs`, `3.40 ms`, `12.00 s`.
  package static func duration(seconds: Double) -> String {
    switch seconds.magnitude {
    case ..<1e-6: "\(decimals(seconds * 1e9, 0)) ns"
    case ..<1e-4: "\(decimals(seconds * 1e6, 1)) µs"
    case ..<1e-3: "\(decimals(seconds * 1e6, 0)) µs"
    case ..<0.1: "\(decimals(seconds * 1e3, 2)) ms"
    case ..<1: "\(decimals(seconds * 1e3, 0)) ms"
    default: "\(decimals(seconds, 2)) s"
    }
  }

  /// Such as `-12 ms`, `+10.5 s`.
  package static func offset(_ milliseconds: Int64) -> String {
    let sign = milliseconds > 0 ? "+" : ""
    guard milliseconds.magnitude >= 10_000 else { return "\(sign)\(milliseconds) ms" }
    return sign + decimals(Double(milliseconds) / 1_000, 1) + " s"
  }

  /// As for a moment; empty if there is none.
  package static func ago(_ moment: UInt64?, now: UInt64) -> String {
    moment.map { ago($0, now: now) } ?? ""
  }

  /// Both in milliseconds since 1970: `now`, `12 s ago`, `3 days ago`.
  package static func ago(_ moment: UInt64, now: UInt64) -> String {
    let seconds = now > moment ? (now - moment) / 1_000 : 0
    return switch seconds {
    case ..<2: "now"
    case ..<60: "\(seconds) s ago"
    case ..<3_600: "\(seconds / 60) min ago"
    case ..<86_400: "\(seconds / 3_600) h ago"
    case ..<172_800: "1 day ago"
    default: "\(seconds / 86_400) days ago"
    }
  }

  /// A part below 1 % is shown as 1 %: only zero shows as zero.
  package static func percent(_ part: Int, of whole: Int) -> String {
    guard whole > 0 else { return part > 0 ? "over" : "0 %" }
    let percent = Double(part) / Double(whole) * 100
    return "\(part > 0 ? max(1, Int(percent)) : 0) %"
  }

  /// Rounds half away from zero, the same in every locale.
  package static func decimals(_ number: Double, _ places: Int) -> String {
    guard number.isFinite, number.magnitude < 1e15 else { return "\(number)" }
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = UInt64((number.magnitude * scale).rounded())
    let digits = scaled.digits(places + 1)
    let sign = number < 0 && scaled > 0 ? "-" : ""
    guard places > 0 else { return sign + digits }
    return sign + digits.dropLast(places) + "." + digits.suffix(places)
  }
}

extension BinaryInteger {
  /// A number that is not negative, with at least so many digits.
  package func digits(_ count: Int, radix: Int = 10) -> String {
    let digits = String(self, radix: radix)
    return String(repeating: "0", count: Swift.max(0, count - digits.count)) + digits
  }
}
