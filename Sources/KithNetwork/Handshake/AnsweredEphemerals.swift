internal import KithCrypto

/// The initiators' ephemeral keys that were answered last, so that a copied first message gets no
/// second reply.
struct AnsweredEphemerals {
  private let limit: Int
  private var ring: [TransportPublicKey] = []
  private var oldest = 0
  private var members: Set<TransportPublicKey> = []

  init(limit: Int = NetworkLimits.answeredEphemerals) {
    self.limit = limit
  }

  /// Stores a key in place of the oldest. Returns false if it is stored already.
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
