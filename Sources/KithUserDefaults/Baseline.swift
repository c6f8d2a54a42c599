internal import Foundation
internal import Kith
internal import KithCore
internal import KithCrypto

/// Digests of the values that both sides held for a key when the mirror last compared them.
struct Baseline: Hashable {
  /// Zero if there was no value.
  var store: Digest256
  /// Zero if there was no value.
  var defaults: Digest256

  static let nothing = Baseline(store: nil, defaults: nil)

  init(store: PropertyListValue?, defaults: PropertyListValue?) {
    self.store = Self.digest(store)
    self.defaults = Self.digest(defaults.map(Self.kept))
  }

  /// Makes the baseline of a value copied from the defaults, whose digest `baseline` has.
  init(store: PropertyListValue?, sameAs baseline: Baseline) {
    self.store = Self.digest(store)
    self.defaults = baseline.defaults
  }

  /// Whether two values are equal once saved in the defaults.
  static func isSame(_ one: PropertyListValue?, _ other: PropertyListValue?) -> Bool {
    one.map(kept) == other.map(kept)
  }

  // MARK: As bytes

  init?(data: Data) {
    let bytes = [UInt8](data)
    guard bytes.count == 64, let store = try? Digest256(bytes[..<32]),
      let defaults = try? Digest256(bytes[32...])
    else { return nil }
    self.store = store
    self.defaults = defaults
  }

  var data: Data { Data(store.bytes + defaults.bytes) }

  // MARK: Digests

  private static func digest(_ value: PropertyListValue?) -> Digest256 {
    guard let value, let encoded = try? EncodedValue(value) else { return none }
    return Blake2b.digest256(encoded.bytes)
  }

  private static let none = Digest256 { _ in }

  /// A value as the defaults' file returns it: with dates in whole seconds, one NaN, and no negative
  /// zero.
  private static func kept(_ value: PropertyListValue) -> PropertyListValue {
    switch value {
    case .date(let date):
      .date(
        Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)))
    case .double(let double): .double(double.isNaN ? .nan : double == 0 ? 0 : double)
    case .array(let values): .array(values.map(kept))
    case .dictionary(let members): .dictionary(members.mapValues(kept))
    default: value
    }
  }
}
