internal import KithCrypto

/// What a node keeps of one author over all stores, so that no member fills its memory and its disk
/// by making stores (`Docs/Decisions/author-budget.md`).
enum AuthorBudget {
  /// What an author has left for one store; `others` are all other stores.
  ///
  /// - Complexity: O(*s*) in the stores.
  static func left(
    of author: DeviceID, in store: StoreReplica, among others: [StoreIdentifier: StoreReplica]
  ) -> Int {
    var (all, unopened) = (0, 0)
    for other in others.values where other.identifier != store.identifier {
      let weight = other.log.weights[author] ?? 0
      all += weight
      if !other.isOpened { unopened += weight }
    }
    let left = Limits.authorBytes - all
    return store.isOpened ? left : min(left, Limits.unopenedAuthorBytes - unopened)
  }
}
