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
    case revoked = "a device was revoked"
    case revokedHere = "this device was revoked: it exchanges nothing"
    case clocksDiffer = "clocks differ: set them right"
    case clocksAgree = "clocks agree again"
    case clockSetBack = "the clock had been ahead: unpublished writes were stamped again"
    case newGeneration = "the clock had been ahead: a new generation of clocks begins"
    case noGenerationLeft =
      "the clock is ahead, and no generation of clocks is left until next month"
    case publishedAhead = "a device published ahead of this clock: the session ends"
    case generationTooLate =
      "a device published in a generation of clocks that does not count yet: the session ends"
    case policyMismatch = "limits differ: the store does not sync"
    case policiesAgree = "limits agree again"
    case authorOverLimit = "a device exceeds its limit: its new change sets are not accepted"
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
    case newIncarnation = "the database was copied or restored, or a sync failed: new incarnation"
    case tooManyIncarnations = "this device has used up its incarnations: pair it anew"
    case divergence = "equal vectors have different digests: everything is exchanged"
    case storageFailed = "a commit failed: writes fail until one succeeds"
    case storageRecovered = "commits succeed again"
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
    /// Of no device: a person named it, and so many at most as `kith` accepts. A device's own share
    /// its subject, because it may tell ever new ones.
    var address: String?
  }

  var subject: Subject
  var details: [String: String]

  init(
    _ message: Message, device: DeviceID? = nil, store: StoreIdentifier? = nil,
    _ details: [String: String] = [:]
  ) {
    let address = message == .unreached && device == nil ? details["address"] : nil
    subject = Subject(message: message, device: device, store: store, address: address)
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

  private static var sweepMilliseconds: UInt64 { 60_000 }

  private var times: [Subject: [UInt64]] = [:]
  private var sweptAt: UInt64 = 0

  /// Whether a further line may be logged at a monotonic time. Takes it, if so.
  ///
  /// - Complexity: O(1), and O(*n*) in the subjects once a minute.
  mutating func permit(_ subject: Subject, at now: UInt64) -> Bool {
    if now >= sweptAt + Self.sweepMilliseconds {
      sweptAt = now
      times = times.filter { $0.value.contains { Self.counts($0, at: now) } }
    }
    times[subject]?.removeAll { !Self.counts($0, at: now) }
    guard times[subject, default: []].count < Self.lines else { return false }
    times[subject, default: []].append(now)
    return true
  }

  private static func counts(_ time: UInt64, at now: UInt64) -> Bool {
    now - min(now, time) < milliseconds
  }

  /// The subjects that are kept.
  var count: Int { times.count }
}

extension String {
  /// The text with characters that are not drawn, and quotes, as numbers.
  fileprivate var harmless: String {
    unicodeScalars.reduce(into: "") { text, scalar in
      let isHarmless = CharacterEffect(scalar) == .drawn && scalar != "\""
      text += isHarmless ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
    }
  }
}

extension Engine {
  /// Logs events for an operator, without keys and values.
  func report(_ report: Report) { log(line(for: report)) }

  /// Logs a line with names instead of ids; repetitions only at debug. Names come from other devices,
  /// and not every handler escapes them.
  func log(_ line: LogLine) {
    let subject = line.subject
    let now = clock().monotonicMilliseconds
    let isRepeated = !rateLimit.withLock { $0.permit(subject, at: now) }
    var details = line.details
    details["device"] = subject.device.map(name)
    details["store"] = subject.store?.rawValue
    logger.log(
      level: isRepeated ? .debug : subject.message.level, "\(subject.message.rawValue)",
      metadata: details.mapValues { .string($0.harmless) })
  }

  /// Logs how the status changes, until cancelled.
  func logStatusChanges(_ status: @Sendable () -> NodeStatus) async {
    let progress = self.progress
    var changes = StatusLog()
    while !Task.isCancelled {
      let (version, begun) = (progress.version, ContinuousClock.now)
      for line in changes.lines(status(), at: clock().monotonicMilliseconds) { log(line) }
      // A line that was left out for the rate limit is due later, without a change.
      _ = await progress.wait(timeout: .seconds(60)) { progress.version > version }
      // A status costs digests, so a busy node's is read once a second.
      let next = begun + .seconds(1)
      if next > .now { try? await Task.sleep(until: next, clock: .continuous) }
    }
  }

  private func line(for report: Report) -> LogLine {
    switch report {
    case .notStored(let store, let count):
      LogLine(.notStored, store: store, ["count": "\(count)"])
    case .rejected(let peer, let count):
      LogLine(.rejected, device: peer, ["count": "\(count)"])
    case .misdirected(let store, let peer, let author, let count):
      LogLine(
        .misdirected, device: peer, store: store,
        ["author": name(author), "count": "\(count)"])
    case .quarantined(let store, let author, let count):
      LogLine(.quarantined, device: author, store: store, ["count": "\(count)"])
    case .fork(let store, let device, let sequence):
      LogLine(.fork, device: device, store: store, ["sequence": "\(sequence)"])
    case .clone(let device): LogLine(.clone, device: device)
    case .newIncarnation: LogLine(.newIncarnation)
    case .tooManyIncarnations: LogLine(.tooManyIncarnations)
    case .divergence(let store, let peer): LogLine(.divergence, device: peer, store: store)
    case .policyMismatch(let store, let peer, let ours, let theirs):
      LogLine(
        .policyMismatch, device: peer, store: store,
        ["ours": "\(ours)", "theirs": "\(theirs)"])
    case .clocksDiffer(let peer, let milliseconds, let outcome):
      LogLine(
        .clocksDiffer, device: peer,
        [
          "clock": NodeStatus.clockText(milliseconds),
          "meaning": "stores are not exchanged. \(outcome.consequence)",
        ])
    case .clocksAgree(let peer): LogLine(.clocksAgree, device: peer)
    case .clockSetBack(let milliseconds):
      LogLine(.clockSetBack, ["milliseconds": "\(milliseconds)"])
    case .newGeneration(let generation, let milliseconds):
      LogLine(
        .newGeneration, ["generation": "\(generation)", "milliseconds": "\(milliseconds)"])
    case .noGenerationLeft(let generation):
      LogLine(.noGenerationLeft, ["generation": "\(generation)"])
    case .publishedAhead(let peer, let milliseconds):
      LogLine(.publishedAhead, device: peer, ["milliseconds": "\(milliseconds)"])
    case .generationTooLate(let peer, let generation):
      LogLine(.generationTooLate, device: peer, ["generation": "\(generation)"])
    case .authorOverLimit(let store, let author):
      LogLine(.authorOverLimit, device: author, store: store)
    case .revoked(let device, let revokers):
      LogLine(
        device == keys.id ? .revokedHere : .revoked, device: device,
        ["by": revokers.map(name).joined(separator: ", ")])
    case .damaged(let rows, let stores):
      LogLine(
        .damaged,
        ["rows": "\(rows)", "stores": stores.map(\.rawValue).joined(separator: ", ")])
    case .regained(let store): LogLine(.regained, store: store)
    case .lossAccepted(let store): LogLine(.lossAccepted, store: store)
    }
  }

  private func name(_ device: DeviceID) -> String {
    read { $0.roster.name(of: device) } ?? "\(device)"
  }
}
