@testable import KithCrypto

@testable import KithCore

/// A change set that a member signed, as an input describes it. Most of it is possible; each part
/// of it may be impossible.
struct ForgedChangeSet {
  let author: Int
  let changeSet: ChangeSet
  /// Published further ahead than a receiver accepts.
  let isAhead: Bool

  static let sizes = [0, 18, 500, 1_300, 1_990, 2_100]
  static let keys = ["a", "b", "c", "d", "e", "f", "a key that is too long", ""]

  /// Clocks come in few steps, so that equal ones are met.
  private static func moment(_ input: inout FuzzInput) -> HybridTime {
    switch input.byte() {
    case let byte where byte < 0xe0: clock(Int(byte) * 50)
    case let byte where byte < 0xf0: HybridTime(rawValue: UInt64(byte & 7))
    case 0xf0: HybridTime(rawValue: .max)
    case 0xf1: clock(60_000)
    case let byte: clock(60_000 + (Int(byte) - 0xf2) * 3_000)
    }
  }

  private static func device(_ input: inout FuzzInput, otherwise author: Int) -> DeviceID {
    let account = FuzzAccount.shared
    switch input.byte() {
    case 0: return account.stranger.id
    case let byte where byte < 8: return account.devices[Int(byte) % account.devices.count].id
    default: return account.devices[author].id
    }
  }

  init(_ input: inout FuzzInput) {
    author = [1, 2, 1, 2, 0][input.number(below: 5)]
    let incarnation = UInt64(input.number(below: 2) + 1)
    let sequence: UInt64 =
      switch input.byte() {
      case 0xfe: Limits.sequence
      case let byte: UInt64(byte % 6) + 1
      }
    let published = Self.moment(&input)
    let flaws = input.byte()
    // One flaw at a time, and mostly none.
    let sealer = Self.author(author, incarnation, flaw: flaws < 4 ? Int(flaws) : 0)
    var plaintexts: [[UInt8]] = []
    for _ in 0..<input.number(below: 5) {
      plaintexts.append(Self.plaintext(&input, author: author, published: published))
    }
    changeSet = sealer.seal(plaintexts, sequence: sequence, clock: published)
    isAhead = published > clock(60_000)
  }

  /// Authors by device, incarnation and flaw: 1 another store's tag, 2 a signature for another
  /// account, 3 an epoch that nobody has.
  private static let authors: [[Int]: FuzzAuthor] = {
    var authors: [[Int]: FuzzAuthor] = [:]
    for index in 0..<3 {
      for incarnation in 1...2 {
        for flaw in 0...3 {
          authors[[index, incarnation, flaw]] = FuzzAuthor(
            index, incarnation: UInt64(incarnation),
            store: flaw == 1
              ? StoreIdentifier("com.example.Other") ?? FuzzAccount.store : FuzzAccount.store,
            account: flaw == 2 ? AccountID(Blake2b.digest256([1])) : FuzzAccount.shared.id,
            epoch: flaw == 3 ? EpochID(Blake2b.digest256([2])) : nil)
        }
      }
    }
    return authors
  }()

  private static func author(_ index: Int, _ incarnation: UInt64, flaw: Int) -> FuzzAuthor {
    authors[[index, Int(incarnation), flaw]] ?? FuzzAuthor(index, incarnation: incarnation)
  }

  private static func plaintext(
    _ input: inout FuzzInput, author: Int, published: HybridTime
  ) -> [UInt8] {
    let key = keys[input.number(below: keys.count)]
    let kind = input.byte()
    // Mostly one clock for all, as devices have it.
    let stamp = Stamp(
      clock: kind & 0x10 == 0 ? moment(&input) : published,
      device: device(&input, otherwise: author))
    let claim = Claim(
      clock: kind & 0x20 == 0 ? moment(&input) : published,
      device: device(&input, otherwise: author), group: UInt32(input.number(below: 3)))
    let content: Entry.Content =
      kind & 3 == 3
      ? .removed
      : .value(text(sizes[input.number(below: sizes.count)], 0x61 + input.byte() % 4))
    var replaced: Stamp?
    if kind & 4 != 0 {
      replaced = Stamp(clock: moment(&input), device: device(&input, otherwise: author))
    }
    var fallback: Fallback?
    if kind & 8 != 0 {
      fallback = Fallback(
        value: text(sizes[input.number(below: sizes.count)], 0x7a),
        claim: Claim(
          clock: moment(&input), device: device(&input, otherwise: author),
          group: UInt32(input.number(below: 3))))
    }
    let plaintext = Entry(
      key: Key(key), stamp: stamp, content: content, claim: claim, replaced: replaced,
      fallback: fallback
    ).plaintext()
    switch kind >> 6 {
    case 3:
      // Not what an author would encode: altered, or cut off.
      var altered = plaintext
      let place = input.number(below: max(1, altered.count))
      if place < altered.count { altered[place] ^= input.byte() }
      return altered
    default: return plaintext
    }
  }
}
