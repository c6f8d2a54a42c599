import Foundation
import KithCrypto
import Testing

@testable import KithCore

/// Worked cases of what a quota shows. `KITH_QUOTA_VECTORS` names a file of cases to read instead
/// of the repository's own, which `Vectors/make-quota-vectors.py` makes by a naive model.
@Suite struct QuotaVectors {
  struct File: Decodable {
    var cases: [Case]
  }

  struct Case: Decodable, CustomTestStringConvertible {
    var name: String
    var maxBytes: Int
    var maxKeys: Int
    var entries: [CaseEntry]
    var shown: [String: String]
    var hidden: [String]

    var testDescription: String { name }
  }

  struct CaseFallback: Decodable {
    var size: Int
    var claim: ClaimArray
  }

  struct CaseEntry: Decodable {
    var key: String
    var stamp: StampArray
    var size: Int?
    var claim: ClaimArray
    var fallback: CaseFallback?
    var replaced: StampArray?
  }

  /// `[clock, device]`; devices are short strings that compare as bytes.
  struct StampArray: Decodable {
    var stamp: Stamp

    init(from decoder: any Decoder) throws {
      var values = try decoder.unkeyedContainer()
      let clock = try values.decode(UInt64.self)
      stamp = Stamp(
        clock: HybridTime(rawValue: clock), device: try device(values.decode(String.self)))
    }
  }

  /// `[clock, device, group]`.
  struct ClaimArray: Decodable {
    var claim: Claim

    init(from decoder: any Decoder) throws {
      var values = try decoder.unkeyedContainer()
      let clock = try values.decode(UInt64.self)
      let author = try device(values.decode(String.self))
      claim = Claim(
        clock: HybridTime(rawValue: clock), device: author, group: try values.decode(UInt32.self))
    }
  }

  static func load() throws -> [Case] {
    let named = ProcessInfo.processInfo.environment["KITH_QUOTA_VECTORS"]
    let own = Bundle.module.url(
      forResource: "quota-own", withExtension: "json", subdirectory: "Vectors")
    let url = try #require(named.map { URL(fileURLWithPath: $0) } ?? own)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try decoder.decode(File.self, from: Data(contentsOf: url)).cases
  }

  @Test func `every case shows and hides what it says, in any order of arrival`() throws {
    let cases = try Self.load()
    #expect(!cases.isEmpty)
    var random = SeededEntropy(seed: 1)
    for vector in cases {
      var entries = try vector.entries.map(kept)
      for round in 0..<6 {
        check(vector, entries, "\(vector.name), order \(round)")
        entries.shuffle(using: &random)
      }
    }
  }

  private func check(_ vector: Case, _ entries: [KeptEntry], _ comment: Comment) {
    var state = StoreState(
      policy: Policy(totalBytes: vector.maxBytes, keys: vector.maxKeys))
    for entry in entries {
      _ = state.merge(entry)
      // Nothing that is worked out in between may leave a trace.
      _ = state.refresh([entry.entry.key])
    }
    let shown = Dictionary(
      uniqueKeysWithValues: state.shown.map { ($0.key.text, $0.value.step.rawValue) })
    #expect(shown == vector.shown, comment)
    #expect(state.hiddenKeys.map(\.text) == vector.hidden.sorted(), comment)
    let bytes = state.shown.values.reduce(0) { $0 + $1.value.size }
    #expect(bytes == state.shownBytes, comment)
  }

  private func kept(_ vector: CaseEntry) throws -> KeptEntry {
    let entry = Entry(
      key: Key(vector.key), stamp: vector.stamp.stamp,
      content: vector.size.map { .value(value(size: $0)) } ?? .removed,
      claim: vector.claim.claim, replaced: vector.replaced?.stamp,
      fallback: vector.fallback.map {
        Fallback(value: value(size: $0.size), claim: $0.claim.claim)
      })
    return KeptEntry(entry: entry, digest: Blake2b.digest256(entry.plaintext()), home: nil)
  }
}

/// Bytes of a size; what they say does not matter to a quota.
private func value(size: Int) -> EncodedValue {
  EncodedValue(trusting: Array(repeating: 0, count: size))
}

private func device(_ name: String) throws -> DeviceID {
  var bytes = Array(name.utf8)
  bytes += Array(repeating: 0, count: max(0, DeviceID.byteCount - bytes.count))
  return try DeviceID(bytes)
}
