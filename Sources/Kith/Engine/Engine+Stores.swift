internal import KithCore

extension Engine {
  /// The view of a store, which is opened if need be. A person who looks at a store that is there
  /// does not open it as a program does, for which more of it is kept.
  func open(
    _ store: StoreIdentifier, policy: Policy, isLooking: Bool = false
  ) throws(KithError) -> StoreView {
    let opened = perform(drainsHere: false) { state -> (Result<StoreView, KithError>, [Effect]) in
      if state.isClosed { return (.failure(.closedNode), []) }
      let isOpen = !isLooking && state.health.problem == nil
      if let view = state.views[store] {
        guard state.policies[store] ?? policy == policy else {
          return (
            .failure(
              KithError(
                .invalidPolicy,
                "The store \(store) is open with other limits. Use the same everywhere.")), []
          )
        }
        guard isOpen, state.policies[store] == nil else { return (.success(view), []) }
        state.policies[store] = policy
        return (.success(view), state.replica.handle(.open(store, policy), at: clock()))
      }
      let effects = isOpen ? state.replica.handle(.open(store, policy), at: clock()) : []
      for case .refusedStore(store, let error) in effects {
        return (.failure(KithError(error, store: store)), effects)
      }
      let values = state.replica.view(of: store).compactMapValues { try? $0.decoded() }
      let view = StoreView(identifier: store, values: values)
      state.views[store] = view
      if !isLooking { state.policies[store] = policy }
      return (.success(view), effects.filter { if case .view = $0 { false } else { true } })
    }
    return try opened.get()
  }

  /// Opens a store for a view that showed another engine's, and shows there what this one has.
  /// `superseded` are keys whose writes by this program were not taken.
  func open(
    _ view: StoreView, policy: Policy, reason: Change.Reason, superseded: Set<Key>
  ) throws(KithError) {
    let store = view.identifier
    var later: [() -> Void] = []
    let opened = perform(drainsHere: false) { state -> (Result<Void, KithError>, [Effect]) in
      if state.isClosed { return (.failure(.closedNode), []) }
      let effects =
        state.health.problem == nil ? state.replica.handle(.open(store, policy), at: clock()) : []
      for case .refusedStore(store, let error) in effects {
        return (.failure(KithError(error, store: store)), effects)
      }
      state.views[store] = view
      state.policies[store] = policy
      later = view.show(
        state.replica.view(of: store), reason: reason, superseded: superseded)
      return (.success(()), effects.filter { if case .view = $0 { false } else { true } })
    }
    for run in later { run() }
    try opened.get()
  }

  /// Shows nothing more in a view, which another account's engine takes over.
  func release(_ view: StoreView) {
    state.withLock { state in
      guard state.views[view.identifier] === view else { return }
      state.views[view.identifier] = nil
    }
  }

  /// Takes nothing in any more, and makes all durable that was written: where another thread is
  /// at it, waits for that.
  func close() throws(KithError) {
    state.withLock { state in
      state.isClosed = true
      state.endGathering()
    }
    drainIfIdle()
    let isDrainedElsewhere = state.withLock { state in
      state.isDrainAwaited = state.isDraining
      return state.isDraining
    }
    if isDrainedElsewhere { drained.wait() }
    let (views, waiting, problem) = state.withLock { state in
      (
        Array(state.views.values), state.waiters.settleAll(.failure(.closedNode)),
        state.failureWhileClosing ?? state.health.problem
      )
    }
    for tell in waiting { tell() }
    for view in views { view.finish() }
    progress.finish()
    if let problem { throw problem }
  }
}
