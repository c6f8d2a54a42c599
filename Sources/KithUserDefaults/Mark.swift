internal import Foundation
internal import Kith
internal import KithCore
internal import KithCrypto

/// The values that both sides held for a key when the mirror last compared them, as digests.
struct Mark: Hashable {
  /// The store's value; all zero if there was none.
  var store: Digest256
  /// The defaults' value; all zero if there was none.
  var defaults: Digest256

  /// The mark of a key that neither side held.
  static let nothing = Mark(store: nil, defaults: nil)

  init(store: PropertyListValue?, defaults: PropertyListValue?) {
    self.store = Self.digest(store)
    self.defaults = Self.digest(defaults.map(Self.kept))
  }

  /// Makes the mark of a value that was copied from the defaults, with the known digest.
  init(store: PropertyListValue?, defaults: PropertyListValue?, sameAs mark: Mark) {
    self.store = Self.digest(store)
    self.defaults = mark.defaults
  }

  /// Returns whether two values are equal once they were saved in the defaults.
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

  /// Returns a value as it is after the defaults' file was written and read: dates have whole
  /// seconds, and there is no negative zero.
  private static func kept(_ value: PropertyListValue) -> PropertyListValue {
    switch value {
    case .date(let date):
      .date(
        Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)))
    case .double(let double): .double(double == 0 ? 0 : double)
    case .array(let values): .array(values.map(kept))
    case .dictionary(let members): .dictionary(members.mapValues(kept))
    default: value
    }
  }
}
