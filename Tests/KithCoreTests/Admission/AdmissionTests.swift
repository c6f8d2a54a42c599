import Foundation
import KithCrypto
import Testing

@testable import KithCore

/// The rules of `Docs/Protocol/quota.md`, one at a time; the worked cases put them together.
@Suite struct AdmissionRuleTests {
  private func claim(_ clock: UInt64, group: UInt32 = 0) -> Claim {
    let device = DeviceID { $0.initializeMemory(as: UInt8.self, repeating: 1) }
    return Claim(clock: HybridTime(rawValue: clock), device: device, group: group)
  }

  private func offer(_ steps: (ShownStep, size: Int, Claim)...) -> AdmissionOffer {
    AdmissionOffer(
      keyBytes: 1,
      steps: steps.map { AdmissionStep(kind: $0.0, size: $0.size, claim: $0.2) })
  }

  @Test func `if all newest values fit all are shown, whatever they would fall back to`() {
    // Under rule 2 alone a step over the policy, of equal claim, keeps the first key from showing.
    let offers = [
      offer((.value, 10, claim(1))),
      offer((.runnerUp, 200, claim(1)), (.value, 10, claim(2))),
    ]
    let policy = Policy(totalBytes: 1_000, keys: 2, valueBytes: 100)
    #expect(Admission.shown(of: offers, under: policy) == [.value, .value])
    // It does so if not all fit.
    let crowded = offers + [offer((.value, 10, claim(3)))]
    #expect(Admission.shown(of: crowded, under: policy) == [nil, .value, .value])
  }

  @Test func `the earlier claim keeps its room, in whatever order the keys come`() {
    let early = offer((.value, 600, claim(1)))
    let late = offer((.value, 600, claim(2)))
    let policy = Policy(totalBytes: 1_000)
    #expect(Admission.shown(of: [early, late], under: policy) == [.value, nil])
    #expect(Admission.shown(of: [late, early], under: policy) == [nil, .value])
  }

  @Test func `of equal clock and device the group decides, and a group stands or falls whole`() {
    let policy = Policy(totalBytes: 1_000)
    let first = offer((.value, 600, claim(1, group: 0)))
    let second = offer((.value, 600, claim(1, group: 1)))
    let third = offer((.value, 10, claim(1, group: 1)))
    #expect(Admission.shown(of: [third, second, first], under: policy) == [nil, nil, .value])
  }

  @Test func `a fallback is shown where the value that replaced it does not fit`() {
    let policy = Policy(totalBytes: 1_000)
    let grown = offer((.fallback, 400, claim(1)), (.value, 700, claim(3)))
    let other = offer((.value, 500, claim(2)))
    #expect(Admission.shown(of: [grown, other], under: policy) == [.fallback, .value])
  }
}

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
    // As a start shows them.
    var started = StoreState(policy: state.policy)
    for entry in entries { _ = started.merge(entry) }
    started.showAll()
    #expect(started.shown == state.shown && started.shownBytes == bytes, comment)
    #expect(started.hiddenKeys == state.hiddenKeys, comment)
  }

  private func kept(_ vector: CaseEntry) throws -> KeptEntry {
    let entry = Entry(
      key: Key(vector.key), stamp: vector.stamp.stamp,
      content: vector.size.map { .value(value(size: $0)) } ?? .removed,
      claim: vector.claim.claim, replaced: vector.replaced?.stamp,
      fallback: vector.fallback.map {
        Fallback(value: value(size: $0.size), claim: $0.claim.claim)
      })
    return KeptEntry(entry: entry, digest: Blake2b.digest256(entry.plaintext()), location: nil)
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
