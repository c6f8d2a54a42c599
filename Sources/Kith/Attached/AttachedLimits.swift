/// The bounds of a program that is attached to another one's node.
enum AttachedLimits {
  /// The longest that attaching may take.
  static let attach = Duration.seconds(10)
  /// The longest that a request of its own (what is hidden, refusals, who has what) may take.
  static let request = Duration.seconds(5)
  /// How long a write waits for room, a flush or a durable write for its answer. A durable write
  /// whose time is over is told so within as long again.
  static let answer = Duration.seconds(30)
  /// The most bytes of lines that wait for their answers; a write beyond them waits. A line that is
  /// longer is sent alone.
  static let unansweredBytes = 4 << 20
  /// How long to wait before a node that has no room for a connection is asked again.
  static let retry = Duration.milliseconds(20)
  /// Above this capacity in bytes a buffer that is empty is given back.
  static let keptBytes = 1 << 20
}
