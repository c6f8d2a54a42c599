/// The limits of carriers that are not an argument.
enum CarrierLimits {
  /// Bytes of an object's name.
  static let nameBytes = 128
  /// Directories of a place.
  static let placeDepth = 4
  /// Bytes of an address, and of a path of a folder.
  static let addressBytes = 2_048
  /// Bytes of a file with credentials.
  static let credentialBytes = 8_192

  /// Threads of each folder: four for the objects that are got at once, one for an operation that
  /// hangs. Waiting for a thread counts as the storage's silence.
  static let folderThreads = 5
  /// Threads for the requests of all carriers: there are four, and each gets four objects at once.
  static let requestThreads = 16
  /// Bytes of a file that are read or written between two looks at whether to go on; slow storage
  /// must take less than ``quiet`` for them.
  static let chunkBytes = 64 << 10
  /// Temporary files of other writers that a folder remembers, to remove them later.
  static let temporaryFiles = 64
  /// The age at which the rest of a broken-off put is removed.
  static let temporaryAge = Duration.seconds(3_600)

  /// Time without a byte, after which an operation ends.
  static let quiet = Duration.seconds(30)
  /// Time after which an operation ends in any case: a server can send a byte now and then for ever.
  static let longest = Duration.seconds(900)
  static let connectSeconds = 30
  /// Connections that are kept open between requests.
  static let idleConnections = 2
  /// Bytes of an answer's header.
  static let headerBytes = 64 << 10
  /// Bytes of an answer that is neither an object nor a listing.
  static let answerBytes = 64 << 10
  /// Bytes of an answer for each member that a listing may have, besides its URL or key; servers take
  /// 300 to 500.
  static let memberBytes = 600
  /// Elements of XML for each of them; servers take up to 12.
  static let memberElements = 16
  /// Members that are no objects, such as files of other programs.
  static let foreignMembers = 1_024
  static let redirects = 3
  /// The longest wait that a server may ask for.
  static let retryAfter = Duration.seconds(86_400)
  /// Answers that make up one listing of a bucket.
  static let pages = 256
  /// Objects of each of them; servers give no more.
  static let pageKeys = 1_000

  /// Elements of XML inside each other.
  static let xmlDepth = 32
  /// Bytes of an element's name, and of its text.
  static let xmlNameBytes = 128
  static let xmlTextBytes = 4_096
}
