/// The significant digits of a decimal number without its sign: 0.d₁d₂d₃… × 10^exponent, with no zero
/// at either end. Zero has no digits.
struct DecimalDigits: Equatable {
  private(set) var digits: [UInt8]
  private(set) var exponent: Int

  /// Nil if the text is no decimal number, such as `inf` or `0x1p3`.
  init?(_ text: String) {
    let parts = text.split(maxSplits: 1) { $0 == "e" || $0 == "E" }
    guard let mantissa = parts.first else { return nil }
    (digits, exponent) = ([], 0)
    var hasPoint = false
    for byte in mantissa.utf8 {
      switch byte {
      case UInt8(ascii: "+"), UInt8(ascii: "-"): continue
      case UInt8(ascii: "."): hasPoint = true
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        digits.append(byte - UInt8(ascii: "0"))
        if !hasPoint { exponent += 1 }
      default: return nil
      }
    }
    if parts.count == 2 {
      guard let power = Int(parts[1]) else { return nil }
      // A number that is not zero lies within a double's range.
      exponent &+= power
    }
    normalise()
  }

  /// All digits of a finite double: 767 at most.
  ///
  /// - Complexity: O(*n*·*p*) in the digits and the power of two.
  init(exactly double: Double) {
    let bits = double.exponentBitPattern
    var significand = double.significandBitPattern
    var power = -1_074
    if bits > 0 {
      significand |= 1 << 52
      power = Int(bits) - 1_075
    }
    let zeros = significand == 0 ? 0 : significand.trailingZeroBitCount
    power = significand == 0 ? 0 : power + zeros
    // The last digit first. Halving is multiplying by 5 and dividing by 10.
    var reversed = String(significand >> zeros).utf8.reversed().map { $0 - UInt8(ascii: "0") }
    let factor: UInt8 = power < 0 ? 5 : 2
    for _ in 0..<power.magnitude {
      var carry: UInt8 = 0
      for index in reversed.indices {
        let product = reversed[index] * factor + carry
        reversed[index] = product % 10
        carry = product / 10
      }
      if carry > 0 { reversed.append(carry) }
    }
    digits = reversed.reversed()
    exponent = digits.count + min(power, 0)
    normalise()
  }

  /// The number without further digits.
  func cut(to count: Int) -> Self {
    var cut = self
    cut.digits = Array(digits.prefix(count))
    return cut
  }

  /// The nearest number with at most so many digits; of two, the one whose last digit is even.
  func rounded(to count: Int) -> Self {
    guard digits.count > count, count > 0 else { return self }
    var rounded = cut(to: count)
    // The last digit is not zero, so a half is a 5 alone.
    let isHalf = digits.count == count + 1 && digits[count] == 5
    if isHalf ? !digits[count - 1].isMultiple(of: 2) : digits[count] >= 5 {
      var index = count - 1
      while index > 0, rounded.digits[index] == 9 {
        rounded.digits[index] = 0
        index -= 1
      }
      rounded.digits[index] += 1
      if rounded.digits[0] == 10 {
        rounded.digits[0] = 1
        rounded.exponent += 1
      }
    }
    rounded.normalise()
    return rounded
  }

  private mutating func normalise() {
    while digits.last == 0 { digits.removeLast() }
    let zeros = digits.prefix { $0 == 0 }.count
    digits.removeFirst(zeros)
    exponent = digits.isEmpty ? 0 : exponent &- zeros
  }
}

extension Double {
  /// Whether the double, which was read from a text, keeps all that the text says.
  ///
  /// Printed with as many significant digits as the text has, rounded or cut, the double must give the
  /// text's digits: `0.1` and `0.10000000000000000555` are kept, `9007199254740993` and 30 digits of π
  /// are not. Texts that are no decimal numbers are kept.
  package func keeps(_ text: String) -> Bool {
    guard isFinite, let written = DecimalDigits(text), written != DecimalDigits(description) else {
      return true
    }
    let (exact, count) = (DecimalDigits(exactly: self), written.digits.count)
    return written == exact.rounded(to: count) || written == exact.cut(to: count)
  }
}
