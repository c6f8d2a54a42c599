internal import KithCrypto

/// A full, over-quota store for measuring admission (`Docs/Testing.md`, "Performance"), as timed by
/// `kith bench`.
package struct AdmissionLoad: Sendable {
  private let offers: [AdmissionOffer]
  private let policy: Policy

  /// Makes as many keys as the policy allows, each offering its newest value and a fallback: 2,048
  /// steps under the standard policy. Together they are twice as large as the policy allows, with
  /// claims interleaved. Every second key's newest value is smaller than its fallback. So
  /// admissions free room, and refused groups are checked again.
  package init(policy: Policy = .standard) {
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

  /// The number of steps.
  package var steps: Int { offers.reduce(0) { $0 + $1.steps.count } }

  /// Decides which values are shown, and returns the number of keys that show one.
  package func admit() -> Int {
    Admission.shown(of: offers, under: policy).count { $0 != nil }
  }
}
