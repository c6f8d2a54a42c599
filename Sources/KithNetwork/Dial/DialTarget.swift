package import KithCore
package import KithCrypto

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

package enum DialFailure: Hashable, Sendable {
  /// No connection.
  case unreachable(NetworkFailure.Reason)
  /// The handshake failed: another account, another program, or an older key.
  case refused
  /// Another device than the expected one answered.
  case anotherDevice
  /// This node has no room for a session, or no pre-shared key.
  case noRoom
  case ourselves
}

/// The last finished call of an address.
package struct DialAttempt: Hashable, Sendable {
  /// When it began, since 1970.
  package var milliseconds: UInt64
  /// Nil: a session began.
  package var failure: DialFailure?
}

/// An address that a node calls, and what came of it.
package struct DialledAddress: Hashable, Sendable {
  package var address: PeerAddress
  /// The device that is looked for there; nil: any, as a person named the address.
  package var device: DeviceID?
  /// Whether the device is only heard there, and the address is not remembered.
  package var isOnlyHeard = false
  /// The static key met there last.
  package var key: TransportPublicKey?
  /// Nil: it was not called since the start, or the first call goes on.
  package var attempt: DialAttempt?
  /// How many calls of the target have ended.
  package var ended = 0
  /// Whether there is a session at the address.
  package var isConnected = false

  package init(address: PeerAddress) { self.address = address }
}
