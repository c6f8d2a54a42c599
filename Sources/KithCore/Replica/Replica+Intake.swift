internal import KithCrypto

/// What taking in the change sets of one batch adds up to.
struct Intake {
  var taint: Taint
  var mutations: [Mutation] = []
  /// Change sets that were new to us.
  var fresh: [ChangeSet] = []
  /// Keys with an entry that was new to us.
  var touched: Set<Key> = []
  /// What the vector rose by.
  var covered: [Cover] = []
  var needsNewIncarnation = false

  init(taint: Taint) {
    self.taint = taint
  }
}

extension Replica {
  /// Judges one change set and merges its entries; its neighbours do not depend on it.
  func take(_ changeSet: ChangeSet, into store: inout StoreReplica, noting intake: inout Intake) {}
}
