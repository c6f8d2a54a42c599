internal import KithCore

extension Engine {
  /// The view of a store, opened if needed. With `isLooking` it does not count as opened by a
  /// program, and less of it is kept.
  func open(
    _ store: StoreIdentifier, policy: Policy, isLooking: Bool = false
  ) throws(KithError) -> StoreView {
    try perform(drainsHere: false) { (state, effects) throws(KithError) in
      if state.shell.isClosed { throw .closedNode }
      let limits = state.shell.opened[store]
      let view = state.views[store]
      if view != nil, let limits, limits != policy {
        throw KithError(
          .invalidPolicy, "The store \(store) is open with other limits. Use the same everywhere.")
      }
      if !isLooking, view == nil || limits == nil {
        effects = (try? state.take(.open(store, policy), at: clock())) ?? []
      }
      for case .refusedStore(store, let error) in effects where view == nil {
        throw KithError(error, store: store)
      }
      if let view { return view }
      let values = state.shell.replica.view(of: store).compactMapValues { try? $0.decoded() }
      let made = StoreView(identifier: store, device: keys.id, values: values)
      state.views[store] = made
      effects.removeAll { if case .view = $0 { true } else { false } }
      return made
    }
  }

  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError) {
    let store = view.identifier
    var later: [() -> Void] = []
    try perform(drainsHere: false) { (state, effects) throws(KithError) in
      effects = try state.take(.open(store, policy), at: clock())
      for case .refusedStore(store, let error) in effects { throw KithError(error, store: store) }
      state.views[store] = view
      later = view.show(
        state.shell.replica.view(of: store), of: keys.id, reason: reason, superseded: superseded)
      effects.removeAll { if case .view = $0 { true } else { false } }
    }
    for run in later { run() }
  }

  func release(_ view: StoreView) {
    state.withLock { state in
      guard state.views[view.identifier] === view else { return }
      state.views[view.identifier] = nil
    }
  }

  /// Accepts nothing more, and makes all writes durable; waits if another thread drains.
  func close() throws(KithError) {
    state.withLock { $0.shell.close() }
    while true {
      drain()
      let isDrainedElsewhere = state.withLock { state in
        state.isDrainAwaited = state.shell.isBusy
        return state.shell.isBusy
      }
      guard isDrainedElsewhere else { break }
      drained.wait()
    }
    let (views, later, problem) = state.withLock { state in
      let (settled, problem) = state.shell.end()
      return (Array(state.views.values), state.tell(settled), problem)
    }
    for run in later { run() }
    for view in views { view.finish() }
    progress.finish()
    if let problem { throw KithError(problem) }
  }
}
