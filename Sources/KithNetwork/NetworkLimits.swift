internal import NIOCore

/// The limits of this module; most numbers are maximums. ``TransportConfiguration`` has those that
/// a test must shorten.
package enum NetworkLimits {
  /// For an address without a port.
  package static let defaultPort: UInt16 = 4114

  static let tagBytes = 16
  /// The length word before a frame.
  static let frameLengthBytes = 2
  /// The size of a frame, with its tag and without the length word.
  static let frameBytes = 65_535
  static let framePlaintextBytes = frameBytes - tagBytes
  /// The length word before a message.
  static let messageLengthBytes = 4
  /// A message's plaintext, with its length word, is a multiple of this.
  static let paddingBytes = 64

  /// On a member's session.
  package static let messageBytes = 8 << 20
  /// On a membership-only session.
  package static let membershipMessageBytes = 16 << 10
  /// Received by one membership-only session in all.
  package static let membershipSessionBytes = 1 << 20
  package static let pairingMessageBytes = 64 << 10
  static let pairingQueuedMessages = 8
  /// A pairing that became a session ends after this time without a message.
  static let joinSilence = Duration.seconds(120)

  /// Received before a handshake is finished.
  static let handshakeBytes = 1024
  /// Discarded after a failed handshake; later bytes stay in the kernel.
  static let discardedBytes = 64 << 10
  /// Tried with a first message.
  package static let presharedKeys = 8
  /// Initiators' keys that are remembered as answered.
  package static let answeredEphemerals = 8192
  /// The minimum: an ephemeral key and a tag.
  static let leastFirstMessageBytes = 48

  /// In all.
  package static let halfOpen = 256
  /// From one address (IPv6: one /64).
  package static let halfOpenPerAddress = 16
  package static let sessions = 64
  /// Included in ``sessions``.
  package static let membershipSessions = 16
  /// Connections that wait in the kernel to be accepted.
  static let backlog: Int32 = 512
  /// The pause of accepting without resources for another connection.
  static let acceptPause = TimeAmount.seconds(1)
  /// Shortages this close are logged as one.
  static let shortageInterval = TimeAmount.minutes(1)

  /// A session with so many unsent bytes is not writable until ``lowWaterBytes`` are left.
  static let highWaterBytes = 1 << 20
  static let lowWaterBytes = 256 << 10
  /// Unsent bytes of one session; beyond them it ends. The core sends pieces of about 8 MiB, and
  /// waits until the session is drained between them.
  package static let queuedBytes = 160 << 20
  /// The size of a buffer into which small messages are joined.
  static let joinedBytes = 256 << 10
  /// A probed session without an answer ends after this time. It is watched for twice this time.
  static let probeTime = TimeAmount.seconds(5)
  /// After this time without a message, a session is probed when a person looks at the status.
  static let quietTime = TimeAmount.seconds(2)
  /// Bytes of one read.
  static let readBytes = 64 << 10
  /// For one session's messages, before the event loop does other work.
  static let readSlice = TimeAmount.milliseconds(5)
  /// A larger receive buffer is released when empty.
  static let keptBufferBytes = 128 << 10

  static let connectTimeout = Duration.seconds(5)
  /// The time that sent bytes may stay unacknowledged by the peer's kernel.
  static let userTimeout = Duration.seconds(45)
  /// The longest wait before another attempt at a remembered address.
  static let mostRememberedRedialMilliseconds: UInt64 = 300_000
  /// The time between attempts at a device because it is heard on the link.
  static let foundRedialMilliseconds: UInt64 = 5_000
  /// A session of this duration counts as a success.
  static let stableSessionMilliseconds: UInt64 = 10_000
  package static let staticTargets = 256
  /// Devices with remembered addresses.
  package static let rememberedDevices = 1_024
  package static let addressesPerDevice = 8
  /// At one time.
  static let dials = 16
  /// A target is redialled soon after so many membership-only sessions; then it waits as after
  /// failures.
  static let quickRedials = 5

  package static let discoveryPort: UInt16 = 4114
  /// Counted separately for IPv4 and IPv6.
  static let links = 32
  /// Passed on from one link.
  package static let datagramsPerSecond = 256
  /// Read before other connections are served.
  static let datagramsPerRead: UInt = 16
  /// Waiting in the kernel, for one link.
  static let linkReceiveBytes = 64 << 10
  /// Addresses of one device that were heard on links.
  static let foundAddresses = 4
  /// An address that is not heard for this time is dropped.
  static let foundMilliseconds: UInt64 = 200_000
  /// The wait after the kernel's message about a change of a link or an address: others follow.
  static let linkChangeSettling = TimeAmount.milliseconds(200)
  /// The time between scans of the interfaces while the kernel sends such messages.
  static let quietLinkScan = TimeAmount.minutes(5)
  /// The wait before a failed link is tried again; it doubles with each failure.
  static let linkRetryMilliseconds: UInt64 = 10_000
  /// How often it doubles: to about five minutes.
  static let doubledLinkRetries = 5

  /// Wrong codes or tokens that end an invitation.
  package static let pairingTries = 3
  /// The TCP port of an invitation with a code, if free, and the UDP port of its announcements.
  package static let defaultPairingPort: UInt16 = 4115
  static let announcementInterval = TimeAmount.seconds(1)
  /// Considered by one search.
  static let announcedInvitations = 32
  static let announcedInvitationsPerHost = 4
  /// Exchanges in which one typed code is proved, over all inviters.
  package static let pairingExchanges = 3
  static let pairingHalfOpen = 16
}
