import KithCore
import KithCrypto

/// Seals the rows with keys, values or credentials, and those that name devices of carriers: drafts,
/// refusals, past values, objects, the device's own carriers.
struct RowSeal: ~Copyable {
  /// A row's place. The plaintext begins with it, so a row opens only there.
  enum Place {
    case draft(StoreIdentifier, UInt64)
    case refusal(StoreIdentifier, UInt64)
    case pastValue(StoreIdentifier, UInt64)
    case object(CarrierID, ObjectName)
    case carriers

    fileprivate var bytes: [UInt8] {
      switch self {
      case .draft(let store, let number): Self.row(1, store, number)
      case .refusal(let store, let number): Self.row(2, store, number)
      case .pastValue(let store, let number): Self.row(3, store, number)
      case .object(let carrier, let name): [4] + carrier.digest.bytes + name.digest.bytes
      case .carriers: [5]
      }
    }

    private static func row(_ kind: UInt8, _ store: StoreIdentifier, _ number: UInt64) -> [UInt8] {
      // An identifier has at most 255 bytes.
      [kind] + number.bigEndianBytes + [UInt8(store.rawValue.utf8.count)] + store.rawValue.utf8
    }
  }

  private let key: StorageKey

  init(key: consuming StorageKey) { self.key = key }

  borrowing func seal(_ bytes: [UInt8], at place: Place) -> [UInt8] {
    var random = SystemRandom()
    return key.seal(place.bytes + bytes, using: &random)
  }

  /// Nil if another key or place sealed the row.
  borrowing func open(_ sealed: [UInt8], at place: Place) -> [UInt8]? {
    let place = place.bytes
    guard let plaintext = try? key.open(sealed), plaintext.starts(with: place) else { return nil }
    return Array(plaintext.dropFirst(place.count))
  }
}
