internal import KithCore
internal import KithCrypto

/// What a dialler tries to reach: an address that was configured, or a device by the addresses
/// that were learned of it.
enum DialTarget: Hashable, Comparable, Sendable {
  case address(PeerAddress)
  case device(DeviceID)
}

/// One attempt to make.
struct Dial: Equatable, Sendable {
  var target: DialTarget
  var address: PeerAddress
  /// Which pre-shared key to use; 0: the newest. To be taken modulo their number.
  var pskIndex: Int
}

/// How an attempt ended without a session.
enum DialFailure: Equatable, Sendable {
  /// No connection was made.
  case unreachable
  /// The listener did not finish the handshake.
  case refused
  /// The listener is this node.
  case ourselves
}
