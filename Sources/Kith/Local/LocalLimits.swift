internal import Dispatch

/// The bounds of the control socket, for both ends.
package enum LocalLimits {
  /// The version of the protocol.
  static let version = 2
  /// The maximum number of bytes in a request.
  static let requestBytes = 32 << 20
  /// The maximum number of bytes in a reply: all keys and values of the largest store.
  static let replyBytes = 96 << 20

  // The node's side.

  /// The maximum number of connections with short requests. A further connection waits for its turn.
  static let connections = 16
  /// The maximum number of connections that wait for their turn. A further connection is closed.
  static let waitingConnections = 256
  /// The maximum number of connections whose request lasts: `watch`, `invite`, `synchronize`. They
  /// take no room from the others.
  static let lastingConnections = 16
  /// The maximum number of attached programs. They take no room from the others.
  static let attachedConnections = 64
  /// The maximum number of unanswered requests of one connection. At this number the node stops
  /// reading the connection.
  static let unansweredRequests = 256
  /// The time in which a connection must say its first word, in seconds.
  static let helloSeconds: Int64 = 10
  /// The time that a node that ends gives each connection to take its last bytes, in milliseconds.
  static let farewellMilliseconds: Int64 = 1_000
  /// The longest wait of `synchronize`, in seconds.
  package static let longestWaitSeconds = 3_600.0
  /// The time that a candidate waits for the answer of a person, in seconds.
  static let answerSeconds = 600.0

  // The program's side.

  /// The longest time for connecting and opening a store.
  static let connect = Duration.seconds(10)
  /// The longest wait for an answer that needs no disk.
  static let request = Duration.seconds(5)
  /// The longest wait for a write or a flush.
  static let write = Duration.seconds(30)
}

extension Duration {
  /// The same for Dispatch.
  var dispatch: DispatchTimeInterval {
    .milliseconds(Int((self / .milliseconds(1)).rounded(.up)))
  }
}
