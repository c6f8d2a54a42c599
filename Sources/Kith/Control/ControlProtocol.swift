/// The protocol of the control socket, version 1.
///
/// A Unix-domain stream socket named `control` in the device's directory, open to its user only.
/// Either side sends lines, each a JSON object of at most ``ControlLimits/lineBytes`` bytes. A
/// request names its operation; every response repeats the request's id. A response with `error`,
/// or with `isLast`, ends its request; one request is under way at a time on a connection. What is
/// under way ends when its connection does. A connection too many is told so by an error with the
/// id 0, and closed. Values travel as base64 of their encoding (``EncodedValue``). What is no
/// request ends its connection; so does an operation that a node of an earlier build does not know.
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
/// | `acceptLoss` | `store` | what was damaged of it, and is missing still, is gone |
/// | `synchronize` | `store`, `seconds` | `synchronization` |
/// | `watch` | `store` | `entries`, then a `change` each, until the connection closes |
/// | `devices` | | `devices` |
/// | `acceptTime` | | |
/// | `rename` | `device`, `name` | |
/// | `revoke` | `device`, `keeping` (devices) | |
/// | `invite` | `addresses`, `hasCode` | `token`, `code` and `listens`; `triesLeft` after each wrong code; then `candidate`, which the next line answers with `isAccepted` |
/// | `adopt` | `store`, `policy`, `transactions` (of writes), `clocks` (of each) | `keys` whose writes lost; see below |
/// | `attach` | `store`, `policy` | `entries`, then a `change` each; see below |
///
/// `adopt` hands over what was written on this host while nobody was signed in. It is answered once
/// that is durable; who asks forgets it then. The policy counts where the account has no such store.
///
/// An attached connection belongs to a program that works with the store as if it were its own. The
/// store is begun under the limits where it is new, and refused with `invalidPolicy` where it is
/// open with others. After `attach` the connection takes `commit` requests only, one after
/// another, without waiting for answers, under ids of their own that differ from that of `attach`
/// and from 0. They are applied and answered in their order, each once it is durable; **every
/// change up to the one that a commit caused is sent before the commit's answer**. Changes that the
/// connection's own commits caused have the reason `ownWrite`, those of other programs
/// `serverChange`, the node's own program included; they are told without `old`. Lines with
/// `hasMore` belong together with the next one: what they tell is to be shown at once. Lines whose
/// change `goesOn` are parts of one change.
struct ControlRequest: Codable, Sendable {
  enum Operation: String, Codable, Sendable {
    case version, get, list, commit, status, usage, hidden, refusals, synchronize, watch, invite,
      attach, adopt, devices, rename, revoke, acceptLoss, acceptTime

    /// Whether it lasts until something happens, or for ever.
    var isLasting: Bool {
      self == .synchronize || self == .watch || self == .invite || self == .attach
    }
  }

  var version = ControlLimits.version
  var id: UInt64
  /// What to do; nil in the line that answers a candidate.
  var operation: Operation?
  var store: String?
  var key: String?
  var writes: [ControlEntry]?
  var transactions: [[ControlEntry]]?
  var clocks: [UInt64]?
  var seconds: Double?
  var takesThrough: UInt64?
  var isAccepted: Bool?
  var addresses: [String]?
  var hasCode: Bool?
  var policy: ControlPolicy?
  /// The id of a device, and ids of several, in hexadecimal.
  var device: String?
  var keeping: [String]?
  var name: String?
}

/// An answer, or one of several; see ``ControlRequest``.
struct ControlResponse: Codable, Sendable {
  var id: UInt64
  var isLast = true
  /// Whether the next line belongs to what this one tells; only after `attach`.
  var hasMore: Bool?
  var error: ControlFailure?
  var version: Int?
  var value: String?
  var entries: [ControlEntry]?
  var keys: [String]?
  var status: NodeReport?
  var devices: [DeviceReport]?
  var usage: UsageReport?
  var hidden: [ControlHidden]?
  var refusals: [ControlRefusal]?
  var synchronization: ControlSynchronization?
  var change: ControlChange?
  var token: String?
  var code: String?
  /// Where an invitation listens.
  var listens: [String]?
  var triesLeft: Int?
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
  /// The most connections at once that are told that there is no room; more are closed without a word.
  static let turnedAwayConnections = 256
  /// How long such a connection may still send its request, in milliseconds.
  static let farewellMilliseconds: Int64 = 1_000
  /// The most connections at once whose requests last: `watch`, `invite`, `synchronize`. They take
  /// no room from the others.
  static let lastingConnections = 16
  /// The most connections at once that are attached. They take no room from the others.
  static let attachedConnections = 64
  /// The most commits of an attached connection whose answers were not sent. Above it the
  /// connection is not read.
  static let unansweredCommits = 1_024
  /// Above this many bytes a part of what a store shows, or of a change, ends, and what was
  /// gathered to be sent at once is sent.
  static let partBytes = 256 << 10
  /// The longest that `synchronize` waits, in seconds.
  package static let longestWaitSeconds = 3_600.0
  /// How long a connection may wait before its first request is whole.
  static let firstRequestSeconds: Int64 = 10
  /// How long a candidate may wait for its answer.
  static let answerSeconds = 600.0
}
