package enum Software {
  package static let version = "0.1.0"

  /// The release day, 2026-11-01 00:00 UTC, in milliseconds since 1970; an earlier host clock is
  /// wrong. Set it with each release (`SoftwareTests`).
  package static let releasedMilliseconds: UInt64 = 1_793_491_200_000
}
