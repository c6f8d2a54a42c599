/// The last handshake with a device since the start.
struct HeardOfDevice: Sendable {
  /// Its version of Kith; empty if unknown.
  var software = ""
  /// Its clock less ours.
  var clockOffsetMilliseconds: Int64 = 0
  /// Nil for an older epoch than the current one.
  var epoch: EpochID?
}
