internal import NIOCore

/// Every bound of this module, by name. What a test must shorten is in ``TransportConfiguration``,
/// whose defaults are these.
public enum NetworkLimits {
  /// The port that an address means which names none.
  public static let defaultPort: UInt16 = 4114

  /// Bytes of a Noise tag.
  static let tagBytes = 16
  /// Bytes of the length word before a frame.
  static let frameLengthBytes = 2
  /// The most bytes of a frame, tag included and length word not.
  static let frameBytes = 65_535
  /// The most bytes of plaintext in a frame.
  static let framePlaintextBytes = frameBytes - tagBytes
  /// Bytes of the length word before a message.
  static let messageLengthBytes = 4
  /// A message's plaintext, with its length word, is a multiple of this.
  static let paddingBytes = 64

  /// The most bytes of a message on a member's session.
  public static let messageBytes = 8 << 20
  /// The most bytes of a message on a membership-only session.
  public static let membershipMessageBytes = 16 << 10
  /// The most bytes that a membership-only session may bring in all.
  public static let membershipSessionBytes = 1 << 20
  /// The most bytes of a message of a pairing.
  public static let pairingMessageBytes = 64 << 10
  /// The most messages of a pairing that wait to be taken.
  static let pairingQueuedMessages = 8
  /// A pairing that became a session is closed when nothing came for so long.
  static let joinSilence = Duration.seconds(120)

  /// The most bytes taken in before a handshake is done.
  static let handshakeBytes = 1024
  /// Bytes read and thrown away after a handshake failed; later ones are left to the kernel.
  static let discardedBytes = 64 << 10
  /// The most pre-shared keys that a first message is tried under.
  public static let presharedKeys = 8
  /// How many initiators' ephemeral keys are remembered as answered.
  public static let answeredEphemerals = 8192
  /// The least bytes of handshake message 1: an ephemeral key and a tag.
  static let leastFirstMessageBytes = 48

  /// The most half-open connections in all.
  public static let halfOpen = 256
  /// The most half-open connections from one address (IPv6: one /64).
  public static let halfOpenPerAddress = 16
  /// The most established sessions in all.
  public static let sessions = 64
  /// The most membership-only sessions among them.
  public static let membershipSessions = 16
  /// Connections that wait in the kernel to be accepted.
  static let backlog: Int32 = 512
  /// How long accepting pauses where the system has no room for a further connection.
  static let acceptPause = TimeAmount.seconds(1)
  /// Such shortages are logged as one where no more than this lies between them.
  static let shortageInterval = TimeAmount.minutes(1)

  /// A session whose unsent bytes reach this is not writable until they fall to
  /// ``lowWaterBytes``.
  static let highWaterBytes = 1 << 20
  /// See ``highWaterBytes``.
  static let lowWaterBytes = 256 << 10
  /// A session that has more unsent bytes than this is closed: the core's largest batch and what it
  /// lets be under way before, with frames, and as much again of other messages.
  public static let queuedBytes = 160 << 20
  /// Small messages are joined into one buffer up to this size.
  static let joinedBytes = 256 << 10
  /// A session that may have lost its peer is ended where nobody answers for so long, and is watched
  /// for twice the time.
  static let probeTime = TimeAmount.seconds(5)
  /// A session that brought nothing for so long is probed when somebody looks at it.
  static let quietTime = TimeAmount.seconds(2)
  /// The most bytes of one read from an established session.
  static let readBytes = 64 << 10
  /// How long a session's messages are handed on before the event loop's other work has its turn.
  static let turn = TimeAmount.milliseconds(5)
  /// A larger receive buffer is given back when it has been emptied.
  static let keptBufferBytes = 128 << 10

  /// The most addresses that are dialled for ever.
  public static let staticTargets = 256
  /// The most devices whose learned addresses are dialled.
  public static let learnedDevices = 1_024
  /// The most learned addresses of one device.
  public static let addressesPerDevice = 8
  /// The most connections being dialled at one time.
  static let dials = 16
  /// Membership-only sessions in a row after which a target is redialled at once; later ones
  /// wait like failures.
  static let quickRedials = 5

  /// The UDP port of discovery.
  public static let discoveryPort: UInt16 = 4114
  /// The most interfaces, counted once for IPv4 and once for IPv6, that datagrams are sent on.
  static let links = 32
  /// The most datagrams of one link that are handed up in a second.
  public static let datagramsPerSecond = 256
  /// Datagrams read at a time before other connections have their turn.
  static let datagramsPerRead: UInt = 16
  /// Bytes that may wait in the kernel on one link.
  static let linkReceiveBytes = 64 << 10
  /// The most addresses of one device that were found on the link.
  static let foundAddresses = 4
  /// An address found is forgotten when nothing was heard from there for so long.
  static let foundMilliseconds: UInt64 = 200_000
  /// How long a link that failed is left alone.
  static let linkRetryMilliseconds: UInt64 = 10_000

  /// Wrong tokens that end an invitation.
  public static let pairingTries = 3
  /// The port at which an invitation with a code listens if it is free; with UDP, where invitations
  /// are announced.
  public static let defaultPairingPort: UInt16 = 4115
  /// How often an invitation is announced.
  static let announcementInterval = TimeAmount.seconds(1)
  /// The most announced invitations that one search looks at.
  static let announcedInvitations = 32
  /// The most of them that one host may announce.
  static let announcedInvitationsPerHost = 4
  /// Exchanges in which one typed code is proved, over all inviters.
  public static let pairingExchanges = 3
  /// The most half-open connections of an invitation.
  static let pairingHalfOpen = 16
}
