@testable import KithCore
@testable import KithCrypto

/// A full store for measuring admission.
struct AdmissionLoad: Sendable {
  private let offers: [AdmissionOffer]
  private let policy: Policy

  /// Makes as many keys as the policy allows, each with a newest value and a fallback: 2,048 steps
  /// under the standard policy, with interleaved claims. The newest values take 1.5 times the
  /// allowed bytes.
  ///
  /// Every second one is smaller than its fallback: admissions free quota, and refused groups are
  /// checked again.
  init(policy: Policy = .standard) {
    self.policy = policy
    let device = DeviceID(storage: Bytes32())
    let size = policy.totalBytes / max(1, policy.keys)
    offers = (0..<policy.keys).map { index in
      func claim(_ milliseconds: Int) -> Claim {
        Claim(
          clock: HybridTime(milliseconds: UInt64(milliseconds)), device: device,
          group: UInt32(index))
      }
      let isShrinking = index.isMultiple(of: 2)
      let fallback = AdmissionStep(
        kind: .fallback, size: isShrinking ? size + size / 2 : size / 2, claim: claim(1 + index % 7)
      )
      let value = AdmissionStep(
        kind: .value, size: isShrinking ? size : 2 * size, claim: claim(10 + index % 11))
      return AdmissionOffer(keyBytes: 8, steps: [fallback, value])
    }
  }

  var steps: Int { offers.reduce(0) { $0 + $1.steps.count } }

  func admit() -> Int {
    Admission.shown(of: offers, under: policy).count { $0 != nil }
  }
}
