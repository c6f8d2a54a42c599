internal import KithCrypto

/// A batch that was published a little ahead of the time, and waits for it.
struct EarlyBatch {
  var batch: Batch
  var taint: Taint
  /// When it is looked at again, by the monotonic clock.
  var retryAt: UInt64
}

extension Link {
  /// Takes a part of a batch. `room`: how much of a batch is kept; nil: the store is not known.
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

  /// Bytes of batches that came and were not applied yet.
  var bytesHeld: Int {
    stores.values.reduce(assembly.weights.total) { sum, exchange in
      if case .early(let early, _) = exchange.order { sum + early.batch.weight } else { sum }
    }
  }

  // MARK: Early batches

  /// A batch waits for its time. No other of its store is kept meanwhile: the sender has dropped
  /// the entries that the early one supersedes, so none may be counted before it.
  mutating func delay(_ early: EarlyBatch) {
    let hasMissed = !self[early.batch.store].isWhole
    self[early.batch.store].order = .early(early, hasMissed: hasMissed)
  }

  /// When a batch that waits is looked at next, by the monotonic clock.
  var retryAt: UInt64? {
    stores.values.lazy.compactMap {
      if case .early(let early, _) = $0.order { early.retryAt } else { nil }
    }.min()
  }

  /// Another time or generation of clocks counts: all that waits is looked at now.
  mutating func retry(at now: UInt64) {
    for (store, exchange) in stores {
      guard case .early(var early, let hasMissed) = exchange.order else { continue }
      early.retryAt = now
      self[store].order = .early(early, hasMissed: hasMissed)
    }
  }

  /// Takes a batch whose time may have come.
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

  /// Whether a batch was missed and none waits any more: the session is to end, for the next one
  /// begins at this device's coverage.
  var hasMissed: Bool {
    retryAt == nil
      && stores.values.contains { if case .broken = $0.order { true } else { false } }
  }
}
