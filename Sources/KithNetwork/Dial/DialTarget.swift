internal import KithCore

enum DialTarget: Hashable, Comparable, Sendable {
  case address(PeerAddress)
  case device(DeviceID)
}

struct Dial: Equatable, Sendable {
  var target: DialTarget
  var address: PeerAddress
  /// Modulo the number of pre-shared keys; 0: the newest.
  var pskIndex: Int
}

enum DialFailure: Equatable, Sendable {
  /// No connection, no pre-shared key, no room for a session, or another device answered.
  case unreachable
  /// The handshake failed.
  case refused
  case ourselves
}
