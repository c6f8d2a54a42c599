internal import KithCrypto

/// A batch for peers. A large one is read from storage when it is sent, after its commit.
enum OutboundBatch {
  case ready([[UInt8]])
  case stored(StoredBatch)

  init(_ batch: Batch, from log: ChangeSetLog?) {
    guard batch.weight > Limits.readyBatchBytes, let log else {
      self = .ready(batch.messages())
      return
    }
    var stored = StoredBatch(
      store: batch.store, answers: batch.answers, isEverything: batch.isEverything)
    stored.changeSets = batch.changeSets.compactMap { log.changeSets[$0.reference] }
    (stored.covers, stored.horizon) = (batch.covers, batch.horizon)
    self = .stored(stored)
  }

  var byteCount: Int {
    switch self {
    case .ready(let messages): messages.reduce(0) { $0 + $1.count }
    case .stored(let batch): batch.byteCount
    }
  }

  /// A batch that is read from storage never goes early.
  func effects(on session: SessionID, isEarly: Bool) -> [Effect] {
    switch self {
    case .ready(let messages):
      messages.map { isEarly ? .push(session, $0) : .send(session, $0) }
    case .stored(let batch): [.sendStored(session, batch)]
    }
  }
}
