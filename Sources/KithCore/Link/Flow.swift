/// Whether a session takes more. A batch that it does not take is not queued, but made again later
/// (`Docs/Decisions/batches-and-covers.md`).
struct Flow {
  private var isWritable = true
  /// Bytes of batches sent since the network last had room.
  private var bytesUnderWay = 0
  /// Whether the network was asked to report room.
  private var awaitsRoom = false

  var takesMore: Bool { isWritable && !awaitsRoom }

  mutating func set(isWritable: Bool) { self.isWritable = isWritable }

  /// Few of the bytes under way are left.
  mutating func makeRoom() { (bytesUnderWay, awaitsRoom) = (0, false) }

  /// Counts a sent batch. Returns whether to ask the network to report room: after many bytes, or
  /// an unfinished piece.
  mutating func sent(_ bytes: Int, isUnfinished: Bool = false) -> Bool {
    bytesUnderWay += bytes
    guard !awaitsRoom, isUnfinished || bytesUnderWay >= Limits.bytesUnderWay else { return false }
    awaitsRoom = true
    return true
  }
}
