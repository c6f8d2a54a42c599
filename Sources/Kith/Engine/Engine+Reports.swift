internal import KithCore
internal import Logging

extension Engine {
  /// Logs what an operator may want to know, at most at info, and keeps no key and no value.
  func report(_ report: Report) {
    var metadata: Logger.Metadata = [:]
    let message: Logger.Message
    switch report {
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
      message = "clocks differ: set them right"
      metadata = [
        "peer": "\(peer)", "milliseconds": "\(milliseconds)", "outcome": "\(outcome.rawValue)",
      ]
    case .mended(let milliseconds):
      message = "data ahead of the mended clock was dropped, and what was written here restamped"
      metadata = ["milliseconds": "\(milliseconds)"]
    case .publishedAhead(let peer, let milliseconds):
      message = "a peer published ahead of this clock: its change sets wait"
      metadata = ["peer": "\(peer)", "milliseconds": "\(milliseconds)"]
    case .authorOverLimit(let store, let author):
      message = "a device's change sets take too much: they are not pulled"
      metadata = ["store": "\(store)", "author": "\(author)"]
    case .revoked(let device, let revokers):
      message = "a device was removed from the account"
      metadata = ["device": "\(device)", "by": "\(revokers)"]
    case .damagedItem(let store):
      message = "a stored item cannot be opened any more"
      metadata = ["store": "\(store)"]
    }
    logger.info(message, metadata: metadata)
  }
}
