internal import KithCore
internal import KithCrypto

/// The target of a dialler: a configured address, or a device with its learned addresses.
enum DialTarget: Hashable, Comparable, Sendable {
  case address(PeerAddress)
  case device(DeviceID)
}

/// One attempt to make.
struct Dial: Equatable, Sendable {
  var target: DialTarget
  var address: PeerAddress
  /// The number of the pre-shared key to use, modulo their count; 0: the newest.
  var pskIndex: Int
}

/// The result of an attempt without a session.
enum DialFailure: Equatable, Sendable {
  /// No connection was made.
  case unreachable
  /// The listener did not finish the handshake.
  case refused
  /// The listener is this node.
  case ourselves
}
