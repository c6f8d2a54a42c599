/// The orders that result from a change of a store. ``Replica/carryOut(_:in:)`` turns them into
/// effects.
struct StoreOutcome {
  /// For storage, in one commit with the clock.
  var mutations: [Mutation] = []
  /// For the store's programs.
  var views: [ViewChange] = []
  /// For an operator.
  var reports: [Report] = []
  /// Whether statuses and waits must be evaluated again: a transaction was refused, or damage is
  /// gone.
  var hasProgress = false

  static func += (left: inout Self, right: Self) {
    left.mutations += right.mutations
    left.views += right.views
    left.reports += right.reports
    left.hasProgress = left.hasProgress || right.hasProgress
  }
}
