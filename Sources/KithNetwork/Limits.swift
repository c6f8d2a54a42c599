internal import NIOCore

/// All limits of this module. ``TransportConfiguration`` has those that a test must shorten.
package enum NetworkLimits {
  /// The port of an address that names none.
  package static let defaultPort: UInt16 = 4114

  static let tagBytes = 16
  /// Bytes of the length word before a frame.
  static let frameLengthBytes = 2
  /// The maximum number of bytes of a frame, with the tag and without the length word.
  static let frameBytes = 65_535
  /// The maximum number of plaintext bytes in a frame.
  static let framePlaintextBytes = frameBytes - tagBytes
  /// Bytes of the length word before a message.
  static let messageLengthBytes = 4
  /// A message's plaintext, with its length word, is a multiple of this.
  static let paddingBytes = 64

  /// The maximum number of bytes of a message on a member's session.
  package static let messageBytes = 8 << 20
  /// The maximum number of bytes of a message on a membership-only session.
  package static let membershipMessageBytes = 16 << 10
  /// The maximum number of bytes that a membership-only session may receive in all.
  package static let membershipSessionBytes = 1 << 20
  /// The maximum number of bytes of a pairing message.
  package static let pairingMessageBytes = 64 << 10
  /// The maximum number of waiting pairing messages.
  static let pairingQueuedMessages = 8
  /// A pairing that became a session is closed when nothing came for so long.
  static let joinSilence = Duration.seconds(120)

  /// The maximum number of bytes received before a handshake is finished.
  static let handshakeBytes = 1024
  /// The number of bytes read and discarded after a failed handshake; later ones stay in
  /// the kernel.
  static let discardedBytes = 64 << 10
  /// The maximum number of pre-shared keys that a first message is tried with.
  package static let presharedKeys = 8
  /// The number of initiators' ephemeral keys that are remembered as answered.
  package static let answeredEphemerals = 8192
  /// The minimum number of bytes of handshake message 1: an ephemeral key and a tag.
  static let leastFirstMessageBytes = 48

  /// The maximum number of half-open connections in all.
  package static let halfOpen = 256
  /// The maximum number of half-open connections from one address (IPv6: one /64).
  package static let halfOpenPerAddress = 16
  /// The maximum number of established sessions.
  package static let sessions = 64
  /// The maximum number of membership-only sessions among them.
  package static let membershipSessions = 16
  /// The number of connections that wait in the kernel to be accepted.
  static let backlog: Int32 = 512
  /// The pause of accepting if the system has no resources for another connection.
  static let acceptPause = TimeAmount.seconds(1)
  /// Shortages at most this far apart are logged as one.
  static let shortageInterval = TimeAmount.minutes(1)

  /// A session is not writable from this number of unsent bytes on, until they fall to
  /// ``lowWaterBytes``.
  static let highWaterBytes = 1 << 20
  /// See ``highWaterBytes``.
  static let lowWaterBytes = 256 << 10
  /// The number of unsent bytes above which a session is closed: the core's largest batch, the data
  /// that may precede it, their frames, and as much again of other messages.
  package static let queuedBytes = 160 << 20
  /// Small messages are joined into one buffer up to this size.
  static let joinedBytes = 256 << 10
  /// The time after which a probed session ends without an answer. It is watched for twice this
  /// time.
  static let probeTime = TimeAmount.seconds(5)
  /// The time without data after which a session is probed when a person looks at the status.
  static let quietTime = TimeAmount.seconds(2)
  /// The maximum number of bytes of one read from an established session.
  static let readBytes = 64 << 10
  /// The time for passing on a session's messages before the event loop does other work.
  static let turn = TimeAmount.milliseconds(5)
  /// The size above which an empty receive buffer is released.
  static let keptBufferBytes = 128 << 10

  /// The maximum number of configured addresses.
  package static let staticTargets = 256
  /// The maximum number of devices whose learned addresses are dialled.
  package static let learnedDevices = 1_024
  /// The maximum number of learned addresses of one device.
  package static let addressesPerDevice = 8
  /// The maximum number of simultaneous dials.
  static let dials = 16
  /// The number of membership-only sessions in a row after which a target is redialled at once;
  /// then it waits as after failures.
  static let quickRedials = 5

  /// The UDP port of discovery.
  package static let discoveryPort: UInt16 = 4114
  /// The maximum number of interfaces for datagrams, counted separately for IPv4 and IPv6.
  static let links = 32
  /// The maximum number of datagrams of one link that are passed on in a second.
  package static let datagramsPerSecond = 256
  /// The number of datagrams read before other connections are served.
  static let datagramsPerRead: UInt = 16
  /// The number of bytes that may wait in the kernel on one link.
  static let linkReceiveBytes = 64 << 10
  /// The maximum number of addresses of one device that were found on the link.
  static let foundAddresses = 4
  /// The time after which a found address is dropped if nothing was heard from it.
  static let foundMilliseconds: UInt64 = 200_000
  /// The time before a failed link is tried again.
  static let linkRetryMilliseconds: UInt64 = 10_000

  /// The number of wrong tokens that end an invitation.
  package static let pairingTries = 3
  /// The port of an invitation with a code, if free, and the UDP port of its announcements.
  package static let defaultPairingPort: UInt16 = 4115
  /// The time between two announcements of an invitation.
  static let announcementInterval = TimeAmount.seconds(1)
  /// The maximum number of announced invitations that one search considers.
  static let announcedInvitations = 32
  /// The maximum number of them from one host.
  static let announcedInvitationsPerHost = 4
  /// The number of exchanges in which one typed code is proved, over all inviters.
  package static let pairingExchanges = 3
  /// The maximum number of half-open connections of an invitation.
  static let pairingHalfOpen = 16
}
