/// The results of a change of a store, for ``Replica/carryOut(_:in:)``.
struct StoreOutcome {
  /// For storage, in one commit with the clock.
  var mutations: [Mutation] = []
  /// For the store's programs.
  var views: [ViewChange] = []
  /// For an operator.
  var reports: [Report] = []
  /// Whether to evaluate statuses and waits again: refusals changed, or damage is gone.
  var hasProgress = false

  static func += (left: inout Self, right: Self) {
    left.mutations += right.mutations
    left.views += right.views
    left.reports += right.reports
    left.hasProgress = left.hasProgress || right.hasProgress
  }
}
