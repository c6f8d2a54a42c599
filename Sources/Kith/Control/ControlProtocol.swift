/// The protocol of the control socket, version 1.
///
/// A Unix-domain stream socket named `control` in the device's directory, open to its user only.
/// Either side sends lines, each a JSON object of at most ``ControlLimits/lineBytes`` bytes. A
/// request names its operation; every response repeats the request's id. A response with `error`,
/// or with `isLast`, ends its request; one request is under way at a time on a connection. What is
/// under way ends when its connection does. A connection too many is told so by an error with the
/// id 0, and closed. Values travel as base64 of their encoding (``EncodedValue``).
///
/// | operation | takes | answers |
/// | --- | --- | --- |
/// | `version` | | `version` |
/// | `get` | `store`, `key` | `value`, or nothing |
/// | `list` | `store` | `entries` |
/// | `commit` | `store`, `writes` (no `value`: removes) | |
/// | `status` | | `status` |
/// | `usage` | `store` | `usage` |
/// | `hidden` | `store` | `hidden` |
/// | `refusals` | `store`, `takesThrough` | `refusals`; those up to the number are forgotten |
/// | `synchronize` | `store`, `seconds` | `synchronization` |
/// | `watch` | `store` | `entries`, then a `change` each, until the connection closes |
/// | `invite` | `addresses` | `token`, then `candidate`; the next line answers with `isAccepted` |
struct ControlRequest: Codable, Sendable {
  enum Operation: String, Codable, Sendable {
    case version, get, list, commit, status, usage, hidden, refusals, synchronize, watch, invite

    /// Whether it lasts until something happens, or for ever.
    var isLasting: Bool { self == .synchronize || self == .watch || self == .invite }
  }

  var version = ControlLimits.version
  var id: UInt64
  /// What to do; nil in the line that answers a candidate.
  var operation: Operation?
  var store: String?
  var key: String?
  var writes: [ControlEntry]?
  var seconds: Double?
  var takesThrough: UInt64?
  var isAccepted: Bool?
  var addresses: [String]?
}

/// An answer, or one of several; see ``ControlRequest``.
struct ControlResponse: Codable, Sendable {
  var id: UInt64
  var isLast = true
  var error: ControlFailure?
  var version: Int?
  var value: String?
  var entries: [ControlEntry]?
  var status: NodeReport?
  var usage: UsageReport?
  var hidden: [ControlHidden]?
  var refusals: [ControlRefusal]?
  var synchronization: ControlSynchronization?
  var change: ControlChange?
  var token: String?
  var candidate: ControlCandidate?

  init(id: UInt64, isLast: Bool = true) {
    self.id = id
    self.isLast = isLast
  }
}

/// The bounds of the control socket.
package enum ControlLimits {
  /// The version of the protocol.
  static let version = 1
  /// The most bytes of a line.
  static let lineBytes = 32 << 20
  /// The most connections at once that wait for an answer.
  static let connections = 16
  /// The most connections at once whose requests last: `watch`, `invite`, `synchronize`. They take
  /// no room from the others.
  static let lastingConnections = 16
  /// The longest that `synchronize` waits, in seconds.
  package static let longestWaitSeconds = 3_600.0
  /// How long a connection may wait before its first request is whole.
  static let firstRequestSeconds: Int64 = 10
  /// How long a candidate may wait for its answer.
  static let answerSeconds = 600.0
}
