internal import Dispatch

/// The maximums of the control socket, for both ends.
package enum LocalLimits {
  static let version = 15
  static let requestBytes = 32 << 20
  /// Holds all keys and values of the largest store.
  static let replyBytes = 96 << 20
  /// In one message; no more than a ``ChangeBuffer`` keeps apart.
  static let transactions = ChangeBuffer.limit
  /// For several transactions in one message; a larger one goes alone.
  static let transactionBytes = 1 << 20

  // The node's side.

  /// For short requests; further connections wait.
  static let connections = 16
  /// Further connections are closed.
  static let waitingConnections = 256
  /// For `watch`, `invite`, `meet` and `waitUntilSynced`; counted apart.
  static let lastingConnections = 16
  /// Attached programs; counted apart.
  static let attachedConnections = 64
  /// For each connection; at this number the node stops reading it.
  static let unansweredRequests = 256
  /// Requests of all connections that hold a thread until the disk has answered; further ones wait.
  static let blockingRequests = 64
  /// The time until a connection's first request.
  static let helloSeconds: Int64 = 10
  /// The time to take the last bytes when the node ends.
  static let goodbyeMilliseconds: Int64 = 1_000
  /// The longest wait of `meet`: above the time of a connection attempt, and of a handshake.
  static let meeting = Duration.seconds(7)
  /// The longest wait of `waitUntilSynced`.
  package static let longestWaitSeconds = 3_600.0

  // The program's side.

  /// For connecting, and for opening a store.
  static let connect = Duration.seconds(10)
  /// For an answer that needs no disk.
  static let request = Duration.seconds(5)
  /// For the report at the end of a wait whose own time is over.
  static let lateReport = Duration.seconds(2)
  /// For a write or a flush.
  static let write = Duration.seconds(30)
}

extension Duration {
  var dispatch: DispatchTimeInterval {
    .milliseconds(Int((self / .milliseconds(1)).rounded(.up)))
  }
}
