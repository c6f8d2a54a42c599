internal import KithCrypto

/// A batch published a little ahead of the time, for which it waits.
struct EarlyBatch {
  var batch: Batch
  var taint: Taint
  /// By the monotonic clock.
  var retryAt: UInt64
}

extension Link {
  /// Takes a part of a batch. `room` bounds it; nil: the store is unknown.
  mutating func receive(
    _ part: BatchPart, size: Int, keeping room: BatchRoom?
  ) -> BatchAssembly.OnPart {
    let exchange = self[part.store]
    if case .early(let early, _) = exchange.order {
      self[part.store].order = .early(early, hasMissed: true)
    }
    let isWanted = !exchange.isMismatched && exchange.isWhole
    return assembly.add(part, size: size, keeping: isWanted ? room : nil)
  }

  /// Bytes of batches not yet applied.
  var bytesHeld: Int {
    stores.values.reduce(assembly.weights.total) { sum, exchange in
      if case .early(let early, _) = exchange.order { sum + early.batch.weight } else { sum }
    }
  }

  // MARK: Early batches

  /// Delays a batch. Later ones of its store are missed: the sender has dropped entries that it
  /// superseded, so none counts before it.
  mutating func delay(_ early: EarlyBatch) {
    let hasMissed = !self[early.batch.store].isWhole
    self[early.batch.store].order = .early(early, hasMissed: hasMissed)
  }

  /// The next retry of a waiting batch, by the monotonic clock.
  var retryAt: UInt64? {
    stores.values.lazy.compactMap {
      if case .early(let early, _) = $0.order { early.retryAt } else { nil }
    }.min()
  }

  /// Another time or generation counts: retries all waiting batches.
  mutating func retry(at now: UInt64) {
    for (store, exchange) in stores {
      guard case .early(var early, let hasMissed) = exchange.order else { continue }
      early.retryAt = now
      self[store].order = .early(early, hasMissed: hasMissed)
    }
  }

  mutating func nextEarly(at now: UInt64) -> EarlyBatch? {
    for store in stores.keys.sorted() {
      guard case .early(let early, let hasMissed) = self[store].order, early.retryAt <= now else {
        continue
      }
      self[store].order = hasMissed ? .broken : .whole
      return early
    }
    return nil
  }

  /// Whether a batch was missed and none waits. The session then ends, and the next begins at this
  /// device's coverage.
  var hasMissed: Bool {
    retryAt == nil
      && stores.values.contains { if case .broken = $0.order { true } else { false } }
  }
}
