internal import KithCrypto

/// The initiators' ephemeral keys answered last: a copied first message gets no second reply.
struct AnsweredEphemerals {
  private let limit: Int
  private var ring: [TransportPublicKey] = []
  private var oldest = 0
  private var members: Set<TransportPublicKey> = []

  init(limit: Int = NetworkLimits.answeredEphemerals) {
    self.limit = limit
  }

  /// Returns false if the key is stored already. If full, replaces the oldest.
  ///
  /// - Complexity: O(1).
  mutating func insert(_ key: TransportPublicKey) -> Bool {
    guard members.insert(key).inserted else { return false }
    if ring.count < limit {
      ring.append(key)
    } else {
      members.remove(ring[oldest])
      ring[oldest] = key
      oldest = (oldest + 1) % limit
    }
    return true
  }
}
