internal import KithCore

extension Engine {
  /// The view of a store, which is opened if need be.
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView {
    let opened = perform(drainsHere: false) { state -> (Result<StoreView, KithError>, [Effect]) in
      if state.isClosed { return (.failure(.closedNode), []) }
      if let view = state.views[store] {
        guard state.policies[store] == policy else {
          return (
            .failure(
              KithError(
                .invalidPolicy,
                "The store \(store) is open with other limits. Use the same everywhere.")), []
          )
        }
        return (.success(view), [])
      }
      let effects =
        state.health.problem == nil ? state.replica.handle(.open(store, policy), at: clock()) : []
      for case .refusedStore(store, let error) in effects {
        return (.failure(KithError(error, store: store)), effects)
      }
      let values = state.replica.view(of: store).compactMapValues { try? $0.decoded() }
      let view = StoreView(identifier: store, values: values)
      state.views[store] = view
      state.policies[store] = policy
      return (.success(view), effects.filter { if case .view = $0 { false } else { true } })
    }
    return try opened.get()
  }

  /// Takes nothing in any more, and makes all durable that was written: where another thread is
  /// at it, waits for that.
  func close() throws(KithError) {
    state.withLock { $0.isClosed = true }
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
