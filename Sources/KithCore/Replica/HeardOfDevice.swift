/// What was heard of a device in handshakes since the start.
struct HeardOfDevice: Sendable {
  /// Its version of Kith; empty where it did not say.
  var software = ""
  /// Its clock less ours, in milliseconds.
  var clockOffsetMilliseconds: Int64 = 0
  /// The epoch under which it was met last.
  var epoch: EpochID?
}
