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
  /// - Complexity: some 4,000 multiplications at most.
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
    // Nine digits each, the last ones first. Halving is multiplying by 5 and dividing by 10.
    let base: UInt64 = 1_000_000_000
    var limbs = [(significand >> zeros) % base, (significand >> zeros) / base]
    let factor: UInt64 = power < 0 ? 5 : 2
    var rest = Int(power.magnitude)
    while rest > 0 {
      // 5 to the power of 12 is less than the base, and so is each carry.
      let count = min(rest, 12)
      let multiplier = repeatElement(factor, count: count).reduce(1, *)
      var carry: UInt64 = 0
      for index in limbs.indices {
        let product = limbs[index] * multiplier + carry
        limbs[index] = product % base
        carry = product / base
      }
      if carry > 0 { limbs.append(carry) }
      rest -= count
    }
    digits = limbs.reversed().flatMap { limb in
      String(limb + base).utf8.dropFirst().map { $0 - UInt8(ascii: "0") }
    }
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
  /// are not. Of a hexadecimal number each bit must be kept.
  package func keeps(_ text: String) -> Bool {
    guard isFinite else { return true }
    guard let written = DecimalDigits(text) else { return significandWidth == Self.width(of: text) }
    guard written != DecimalDigits(description) else { return true }
    let (exact, count) = (DecimalDigits(exactly: self), written.digits.count)
    return written == exact.rounded(to: count) || written == exact.cut(to: count)
  }

  /// The significand width of a hexadecimal number, however many bits it has.
  private static func width(of text: String) -> Int {
    let digits = text.lowercased().drop { $0 != "x" }.prefix { $0 != "p" }
      .compactMap(\.hexDigitValue)
    let bits = digits.flatMap { digit in [8, 4, 2, 1].map { digit & $0 != 0 } }
    guard let first = bits.firstIndex(of: true), let last = bits.lastIndex(of: true) else {
      return -1
    }
    return last - first
  }
}
