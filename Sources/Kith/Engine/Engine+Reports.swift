internal import KithCore
internal import Logging

extension Engine {
  /// Logs events for an operator, without keys and values. An event that ends the exchange with one
  /// or all devices has a higher level, because a person has to repair it.
  func report(_ report: Report) {
    var metadata: Logger.Metadata = [:]
    var level = Logger.Level.info
    let message: Logger.Message
    switch report {
    case .notStored(let store, let count):
      level = .error
      message = "storage lacks change sets that were to be sent: others give them back"
      metadata = ["store": "\(store)", "count": "\(count)"]
    case .rejected(let peer, let count):
      message = "change sets failed their signature or digest"
      metadata = ["peer": "\(peer)", "count": "\(count)"]
    case .misdirected(let store, let peer, let author, let count):
      message = "change sets came for another store than they were signed for"
      metadata = [
        "store": "\(store)", "peer": "\(peer)", "author": "\(author)", "count": "\(count)",
      ]
    case .quarantined(let store, let author, let count):
      message = "entries are malformed for ever and set aside"
      metadata = ["store": "\(store)", "author": "\(author)", "count": "\(count)"]
    case .fork(let store, let device, let sequence):
      message = "two change sets carry one sequence: a directory was copied"
      metadata = ["store": "\(store)", "device": "\(device)", "sequence": "\(sequence)"]
    case .clone(let device):
      message = "a device runs twice: stop one of the copies"
      metadata = ["device": "\(device)"]
    case .newIncarnation: message = "the database was copied or restored: new incarnation"
    case .tooManyIncarnations: message = "this device has used up its incarnations: pair it anew"
    case .divergence(let store, let peer):
      message = "states differ where they must not: everything is exchanged"
      metadata = ["store": "\(store)", "peer": "\(peer)"]
    case .policyMismatch(let store, let peer, let ours, let theirs):
      message = "limits differ: the store does not sync"
      metadata = [
        "store": "\(store)", "peer": "\(peer)", "ours": "\(ours)", "theirs": "\(theirs)",
      ]
    case .clocksDiffer(let peer, let milliseconds, let outcome):
      level = .warning
      message = "clocks differ: set them right"
      metadata = [
        "peer": "\(name(peer))", "milliseconds": "\(milliseconds)",
        "outcome": "\(outcome.rawValue)",
        "meaning": "stores are not exchanged. \(outcome.consequence)",
      ]
    case .clockSetBack(let milliseconds):
      level = .notice
      message = "the clock had been ahead: unpublished writes were stamped again"
      metadata = ["milliseconds": "\(milliseconds)"]
    case .newGeneration(let generation, let milliseconds):
      level = .notice
      message = "the clock had been ahead: a new generation of clocks begins"
      metadata = ["generation": "\(generation)", "milliseconds": "\(milliseconds)"]
    case .noGenerationLeft(let generation):
      level = .error
      message = "the clock is ahead, and no generation of clocks is left until next month"
      metadata = ["generation": "\(generation)"]
    case .publishedAhead(let peer, let milliseconds):
      level = .warning
      message = "a peer published ahead of this clock: its change sets wait"
      metadata = ["peer": "\(name(peer))", "milliseconds": "\(milliseconds)"]
    case .authorOverLimit(let store, let author):
      message = "a device's change sets take too much: they are not pulled"
      metadata = ["store": "\(store)", "author": "\(author)"]
    case .revoked(let device, let revokers):
      let isThis = device == keys.id
      level = isThis ? .error : .notice
      message =
        isThis
        ? "this device was taken out of the account: nothing is exchanged any more"
        : "a device was taken out of the account"
      let by = revokers.map(name).joined(separator: ", ")
      metadata = ["device": "\(name(device))", "by": "\(by)"]
    case .damaged(let rows, let stores):
      level = .error
      message = "the database is damaged: rows differ from their checksum and were dropped"
      metadata = ["rows": "\(rows)", "stores": "\(stores.map(\.rawValue))"]
    case .regained(let store):
      level = .notice
      message = "other devices have given back what was damaged"
      metadata = ["store": "\(store)"]
    case .lossAccepted(let store):
      level = .notice
      message = "a person accepted that what was damaged is gone"
      metadata = ["store": "\(store)"]
    }
    if level == .warning, isRepeated("\(message) \(metadata["peer"] ?? "")") { level = .info }
    logger.log(level: level, message, metadata: metadata)
  }

  /// Whether the same was logged recently, as for a peer whose clock stays wrong.
  private func isRepeated(_ words: String) -> Bool {
    let now = clock().monotonicMilliseconds
    return warned.withLock { warned in
      warned = warned.filter { now - min(now, $0.value) < Self.repetitionMilliseconds }
      guard warned[words] == nil else { return true }
      warned[words] = now
      return false
    }
  }

  private static let repetitionMilliseconds: UInt64 = 600_000

  private func name(_ device: DeviceID) -> String {
    read { $0.roster.name(of: device) } ?? "\(device)"
  }
}
