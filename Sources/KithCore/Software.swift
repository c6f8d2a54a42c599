/// The identity of this code.
package enum Software {
  /// The version of Kith.
  package static let version = "0.1.0"

  /// The day of its release, 2026-11-01 00:00 UTC, in milliseconds since 1970; a host's earlier
  /// clock is wrong. Set it with each release (`SoftwareTests`).
  package static let releasedMilliseconds: UInt64 = 1_793_491_200_000
}
