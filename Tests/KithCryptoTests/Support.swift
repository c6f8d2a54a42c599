import KithCrypto

/// The bytes that hexadecimal text stands for.
func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap { $0.hexDigitValue }
  return stride(from: 0, to: digits.count - 1, by: 2).map {
    UInt8(digits[$0] * 16 + digits[$0 + 1])
  }
}

/// The key with these bytes.
func key<Key: SecretKey & ~Copyable>(_ bytes: [UInt8], as type: Key.Type = Key.self) -> Key {
  var bytes = bytes
  guard let key = try? Key(zeroing: &bytes) else { fatalError("keys of tests have 32 bytes") }
  return key
}

/// The error that `body` throws, if it does. For bodies that borrow noncopyable values, which
/// the macros cannot capture.
func caught<E: Error>(_ body: () throws(E) -> Void) -> E? {
  do throws(E) {
    try body()
    return nil
  } catch {
    return error
  }
}

/// Every public key of low order on Curve25519, and their non-canonical forms.
let lowOrderPoints: [[UInt8]] = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
].map(hex)

let seedBytes = [UInt8](0..<32)
let otherSeedBytes = [UInt8](32..<64)
