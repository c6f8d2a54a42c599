import KithCore
import KithCrypto

/// Seals the rows with keys, values or credentials, and those that name devices of carriers: drafts,
/// refusals, past values, objects, the device's own carriers.
///
/// The plaintext begins with the row's place, so a row opens only there.
struct RowSeal: ~Copyable {
  enum Kind: UInt8 {
    case draft = 1
    case refusal = 2
    case pastValue = 3
    case object = 4
    case carriers = 5
  }

  private let key: StorageKey

  init(key: consuming StorageKey) { self.key = key }

  borrowing func seal(
    _ kind: Kind, _ store: StoreIdentifier, _ number: UInt64, _ bytes: [UInt8]
  ) -> [UInt8] {
    seal(at: Self.place(kind, store, number), bytes)
  }

  borrowing func seal(_ carrier: CarrierID, _ name: ObjectName, _ bytes: [UInt8]) -> [UInt8] {
    seal(at: Self.place(carrier, name), bytes)
  }

  borrowing func seal(carriers bytes: [UInt8]) -> [UInt8] {
    seal(at: [Kind.carriers.rawValue], bytes)
  }

  private borrowing func seal(at place: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    var random = SystemRandom()
    return key.seal(place + bytes, using: &random)
  }

  /// Nil if another key or place sealed the row.
  borrowing func open(
    _ kind: Kind, _ store: StoreIdentifier, _ number: UInt64, _ sealed: [UInt8]
  ) -> [UInt8]? {
    open(at: Self.place(kind, store, number), sealed)
  }

  borrowing func open(
    _ carrier: CarrierID, _ name: ObjectName, _ sealed: [UInt8]
  ) -> [UInt8]? {
    open(at: Self.place(carrier, name), sealed)
  }

  borrowing func open(carriers sealed: [UInt8]) -> [UInt8]? {
    open(at: [Kind.carriers.rawValue], sealed)
  }

  private borrowing func open(at place: [UInt8], _ sealed: [UInt8]) -> [UInt8]? {
    guard let plaintext = try? key.open(sealed), plaintext.starts(with: place) else { return nil }
    return Array(plaintext.dropFirst(place.count))
  }

  private static func place(_ carrier: CarrierID, _ name: ObjectName) -> [UInt8] {
    [Kind.object.rawValue] + carrier.digest.bytes + name.digest.bytes
  }

  private static func place(
    _ kind: Kind, _ store: StoreIdentifier, _ number: UInt64
  ) -> [UInt8] {
    var place = [kind.rawValue]
    withUnsafeBytes(of: number.bigEndian) { place.append(contentsOf: $0) }
    // An identifier has at most 255 bytes.
    place.append(UInt8(store.rawValue.utf8.count))
    place.append(contentsOf: store.rawValue.utf8)
    return place
  }
}
