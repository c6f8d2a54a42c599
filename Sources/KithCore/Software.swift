/// This code, as it calls itself.
public enum Software {
  /// The version of Kith.
  public static let version = "0.1.0"

  /// The day of its release, 2026-11-01 00:00 UTC, in milliseconds since 1970. A host's clock that
  /// reads earlier is wrong. Set it with each release, as `SoftwareTests` demands.
  public static let releasedMilliseconds: UInt64 = 1_793_491_200_000
}
