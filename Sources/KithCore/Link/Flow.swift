/// Whether a session takes more. A batch that it does not take is not queued, but made again when
/// it does (`Docs/Decisions/batches-and-covers.md`).
struct Flow {
  /// Whether the network takes more.
  private var isWritable = true
  /// Bytes of batches that were sent since the network last had room.
  private var bytesUnderWay = 0
  /// Whether the network was asked to say when it has room again.
  private var awaitsRoom = false

  var takesMore: Bool { isWritable && !awaitsRoom }

  mutating func set(isWritable: Bool) { self.isWritable = isWritable }

  /// Little is left of the bytes under way.
  mutating func makeRoom() { (bytesUnderWay, awaitsRoom) = (0, false) }

  /// Counts a batch that is sent. Returns whether the network is to be asked to say when it has room:
  /// after many bytes, and after a piece that others follow.
  mutating func sent(_ bytes: Int, isUnfinished: Bool = false) -> Bool {
    bytesUnderWay += bytes
    guard !awaitsRoom, isUnfinished || bytesUnderWay >= Limits.bytesUnderWay else { return false }
    awaitsRoom = true
    return true
  }
}
