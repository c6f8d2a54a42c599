internal import KithCrypto

/// The bytes of one author that a store may keep, given all other stores. Otherwise members could
/// fill memory and disk with new stores and devices (`Docs/Decisions/author-budget.md`).
struct AuthorBudget {
  private let author: DeviceID
  private let own: DeviceID
  private var ofAuthor = 0
  /// The part of `ofAuthor` in stores that no program here has opened.
  private var unopened = 0
  /// Bytes of all authors except this device.
  private var ofAll = 0

  /// Counts the bytes in other stores.
  ///
  /// - Complexity: O(*s*) in the stores.
  init(
    of author: DeviceID, beside store: StoreIdentifier,
    among stores: [StoreIdentifier: StoreReplica], own: DeviceID
  ) {
    self.author = author
    self.own = own
    for other in stores.values where other.identifier != store {
      let weight = other.log.weights[author]
      ofAuthor += weight
      if !other.isUsedHere { unopened += weight }
      ofAll += other.log.weights.total - other.log.weights[own]
    }
  }

  /// Bytes of the author that the store may hold.
  ///
  /// - Complexity: O(1).
  func capacity(in store: StoreReplica) -> Int {
    let weights = store.log.weights
    let shared = Limits.authorsBytes - ofAll - (weights.total - weights[author] - weights[own])
    return min(
      Self.most(in: store, besides: ofAuthor, unopened: unopened),
      max(shared, Limits.authorFloorBytes - ofAuthor))
  }

  /// Bytes of one author that a store may hold, `besides` those that it has elsewhere, whatever
  /// other authors have.
  static func most(in store: StoreReplica, besides: Int = 0, unopened: Int = 0) -> Int {
    let most = min(Limits.authorBytes - besides, store.policy.capacity(factor: Limits.authorFactor))
    return store.isUsedHere ? most : min(most, Limits.unopenedAuthorBytes - unopened)
  }
}

extension AuthorBudget {
  /// Bytes of an author that another device keeps of a store at most, if a program there has opened
  /// it. `all`: the author's bytes in all stores.
  static func most(beside all: Int, in store: StoreReplica, of author: DeviceID) -> Int {
    min(
      Limits.authorBytes - (all - store.log.weights[author]),
      store.policy.capacity(factor: Limits.authorFactor))
  }
}

/// Bytes by author, with their sum.
struct AuthorWeights {
  /// Authors without bytes are left out.
  private(set) var byAuthor: [DeviceID: Int] = [:]
  private(set) var total = 0

  subscript(author: DeviceID) -> Int { byAuthor[author] ?? 0 }

  mutating func add(_ bytes: Int, of author: DeviceID) {
    total += bytes
    let sum = self[author] + bytes
    byAuthor[author] = sum == 0 ? nil : sum
  }
}
