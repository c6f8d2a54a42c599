/// Whether a session takes more. A batch that it does not take is not queued, but made again later
/// (`Docs/Decisions/batches-and-covers.md`).
struct Flow {
  private var isWritable = true
  /// Bytes of batches sent since the network was last drained.
  private var bytesUnderWay = 0
  /// Whether the network was asked to report that it is drained.
  private var awaitsDrain = false

  var canSend: Bool { isWritable && !awaitsDrain }

  mutating func set(isWritable: Bool) { self.isWritable = isWritable }

  /// Few of the bytes under way are left.
  mutating func noteDrained() { (bytesUnderWay, awaitsDrain) = (0, false) }

  /// Counts a sent batch. Returns whether to ask the network to report that it is drained: after
  /// many bytes, or an unfinished piece.
  mutating func sent(_ bytes: Int, isUnfinished: Bool = false) -> Bool {
    bytesUnderWay += bytes
    guard !awaitsDrain, isUnfinished || bytesUnderWay >= Limits.bytesUnderWay else { return false }
    awaitsDrain = true
    return true
  }
}
