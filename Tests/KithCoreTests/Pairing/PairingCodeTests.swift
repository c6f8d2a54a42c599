import KithCrypto
import Testing

@testable import KithCore

struct PairingCodeTests {
  @Test func codesRoundTripAndAreReadForgivingly() throws {
    var entropy = SeededEntropy(seed: 1)
    for _ in 0..<200 {
      let text = PairingCode(random: &entropy).text
      #expect(text.wholeMatch(of: /[0-9]{4}-[0-9]{4}/) != nil)
      #expect(try PairingCode(text: text).text == text)
      let digits = text.filter { $0 != "-" }
      #expect(try PairingCode(text: " " + digits.map { "\($0) " }.joined() + "\n").text == text)
      let letters = text.replacing("0", with: "o").replacing("1", with: "L")
        .replacing("-", with: "–")
      #expect(try PairingCode(text: letters).text == text)
      let arabic = String(
        digits.map { Character(Unicode.Scalar(0x660 + UInt32($0.wholeNumberValue ?? 0))!) })
      #expect(try PairingCode(text: arabic).text == text)
    }
  }

  @Test func everyWrongDigitAndEverySwapIsTold() throws {
    var entropy = SeededEntropy(seed: 2)
    for _ in 0..<50 {
      let digits = Array(PairingCode(random: &entropy).text.filter { $0 != "-" })
      for index in digits.indices {
        for wrong in "0123456789" where wrong != digits[index] {
          var typed = digits
          typed[index] = wrong
          #expect(throws: PairingCodeError.checkDigit) { try PairingCode(text: String(typed)) }
        }
        guard index > 0, digits[index] != digits[index - 1] else { continue }
        var typed = digits
        typed.swapAt(index, index - 1)
        #expect(throws: PairingCodeError.checkDigit) { try PairingCode(text: String(typed)) }
      }
    }
  }

  @Test func whatIsNoCodeIsRefused() {
    #expect(throws: PairingCodeError.wrongLength(0)) { try PairingCode(text: "") }
    #expect(throws: PairingCodeError.wrongLength(7)) { try PairingCode(text: "123 4567") }
    #expect(throws: PairingCodeError.invalidCharacter("x")) { try PairingCode(text: "1234x567") }
    #expect(throws: PairingCodeError.invalidCharacter("½")) { try PairingCode(text: "½2345678") }
    #expect(throws: PairingCodeError.self) {
      try PairingCode(text: String(repeating: "1", count: 1 << 20))
    }
  }

  @Test func digitsAreDrawnAlike() {
    var entropy = SeededEntropy(seed: 3)
    var counts = [[Int]](repeating: [Int](repeating: 0, count: 10), count: PairingCode.digits)
    for _ in 0..<4_000 {
      let text = PairingCode(random: &entropy).text.filter { $0 != "-" }
      for (place, digit) in text.enumerated() { counts[place][digit.wholeNumberValue ?? 0] += 1 }
    }
    for place in counts { #expect(place.allSatisfy { (300...500).contains($0) }, "\(place)") }
  }
}
