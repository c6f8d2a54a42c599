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
