/// The facts from the last handshake with a device since the start.
struct HeardOfDevice: Sendable {
  /// Its version of Kith; empty if it did not tell it.
  var software = ""
  /// Its clock less ours, in milliseconds.
  var clockOffsetMilliseconds: Int64 = 0
  /// The epoch under which it was met last.
  var epoch: EpochID?
}
