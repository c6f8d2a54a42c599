internal import KithCore
internal import KithStorage
internal import Logging

/// A line of the log: a constant message, and what it is about. `Docs/Logs.md` explains each.
struct LogLine: Hashable, Sendable {
  enum Message: String, CaseIterable, Sendable {
    case connected = "a device connected"
    case disconnected = "a device disconnected"
    case unreached = "an address leads to no device"
    case joined = "a device joined the account"
    case renamed = "a device was renamed"
    case revoked = "a device was taken out of the account"
    case revokedHere =
      "this device was taken out of the account: nothing is exchanged any more"
    case clocksDiffer = "clocks differ: set them right"
    case clocksAgree = "clocks agree again"
    case clockSetBack = "the clock had been ahead: unpublished writes were stamped again"
    case newGeneration = "the clock had been ahead: a new generation of clocks begins"
    case noGenerationLeft =
      "the clock is ahead, and no generation of clocks is left until next month"
    case publishedAhead = "a device published ahead of this clock: its change sets wait"
    case generationTooLate =
      "a device published in a generation of clocks that does not count yet: the session ends"
    case policyMismatch = "limits differ: the store does not sync"
    case policiesAgree = "limits agree again"
    case authorOverLimit = "a device's change sets take too much: they are not pulled"
    case storesLeftOut = "a store is not exchanged: a device has too many"
    case writesRefused = "writes did not fit later and were refused"
    case valuesHidden = "the newest values do not fit and are hidden"
    case rejected = "change sets were refused: a wrong signature or digest"
    case misdirected = "change sets were refused: they were signed for another store"
    case quarantined = "entries were quarantined: they are malformed"
    case unauthenticatedRefused = "an unauthenticated connection was refused"
    case slowed = "a device keeps this one so busy that its session is slowed"
    case fork = "two change sets carry one sequence: a directory was copied"
    case clone = "a device runs twice: stop one of the copies"
    case newIncarnation = "the database was copied or restored: new incarnation"
    case tooManyIncarnations = "this device has used up its incarnations: pair it anew"
    case divergence = "equal vectors have different digests: everything is exchanged"
    case storageFailed = "storage refused a commit: nothing is kept until it takes one again"
    case storageRecovered = "storage takes commits again"
    case damaged = "the database is damaged: rows do not open and were dropped"
    case rebuilt = "the database is damaged: a new one was made of what can be read"
    case regained = "other devices returned the damaged data"
    case lossAccepted = "a person accepted the loss of damaged data"
    case notStored = "storage lacks change sets that were to be sent: others give them back"
    case carrierFailed = "a carrier cannot be used"
    case carrierWorks = "a carrier can be used again"
    case objectsVanished = "objects vanished from a carrier: see who else deletes there"
    case carriersUnread = "this device's own carriers cannot be read"

    var level: Logger.Level {
      switch self {
      case .revokedHere, .noGenerationLeft, .tooManyIncarnations, .storageFailed, .damaged,
        .rebuilt, .notStored, .carriersUnread:
        .error
      case .clocksDiffer, .publishedAhead, .generationTooLate, .policyMismatch, .authorOverLimit,
        .storesLeftOut, .writesRefused, .valuesHidden, .rejected, .misdirected, .quarantined,
        .slowed, .fork, .clone, .divergence, .carrierFailed, .objectsVanished:
        .warning
      case .connected, .disconnected, .unreached, .joined, .renamed, .revoked, .clocksAgree,
        .clockSetBack, .newGeneration, .policiesAgree, .unauthenticatedRefused, .newIncarnation,
        .storageRecovered, .regained, .lossAccepted, .carrierWorks:
        .notice
      }
    }
  }

  /// Rate-limited per subject.
  struct Subject: Hashable, Sendable {
    var message: Message
    var device: DeviceID?
    var store: StoreIdentifier?
  }

  var subject: Subject
  var details: [String: String]

  init(
    _ message: Message, device: DeviceID? = nil, store: StoreIdentifier? = nil,
    _ details: [String: String] = [:]
  ) {
    subject = Subject(message: message, device: device, store: store)
    self.details = details
  }
}

extension LogLine {
  init(_ rebuilt: RebuiltDatabase) {
    self.init(.rebuilt, ["kept": rebuilt.damaged, "reason": rebuilt.reason])
  }
}

/// How many lines about one subject are logged in a time, so that a device that comes and goes does
/// not fill a log.
struct LogRateLimit<Subject: Hashable & Sendable>: Sendable {
  static var lines: Int { 4 }
  static var milliseconds: UInt64 { 600_000 }

  private var times: [Subject: [UInt64]] = [:]

  /// Whether a further line may be logged at a monotonic time. Takes it, if so.
  mutating func take(_ subject: Subject, at now: UInt64) -> Bool {
    times = times.compactMapValues { times in
      let recent = times.filter { now - min(now, $0) < Self.milliseconds }
      return recent.isEmpty ? nil : recent
    }
    guard times[subject, default: []].count < Self.lines else { return false }
    times[subject, default: []].append(now)
    return true
  }
}
