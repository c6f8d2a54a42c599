internal import KithCore

extension Engine {
  /// The view of a store, opened if needed. With `isLooking` it does not count as opened by a
  /// program, and less of it is kept.
  func open(
    _ store: StoreIdentifier, policy: Policy, isLooking: Bool = false
  ) throws(KithError) -> StoreView {
    let opened = perform(drainsHere: false) { state -> (Result<StoreView, KithError>, [Effect]) in
      if state.shell.isClosed { return (.failure(.closedNode), []) }
      let limits = state.shell.opened[store]
      let view = state.views[store]
      if view != nil, let limits, limits != policy {
        return (
          .failure(
            KithError(
              .invalidPolicy,
              "The store \(store) is open with other limits. Use the same everywhere.")), []
        )
      }
      var effects: [Effect] = []
      if !isLooking, view == nil || limits == nil {
        effects = (try? state.take(.open(store, policy), at: clock()).get()) ?? []
      }
      for case .refusedStore(store, let error) in effects where view == nil {
        return (.failure(KithError(error, store: store)), effects)
      }
      if let view { return (.success(view), effects) }
      let values = state.shell.replica.view(of: store).compactMapValues { try? $0.decoded() }
      let made = StoreView(identifier: store, device: keys.id, values: values)
      state.views[store] = made
      return (.success(made), effects.filter { if case .view = $0 { false } else { true } })
    }
    return try opened.get()
  }

  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError) {
    let store = view.identifier
    var later: [() -> Void] = []
    let opened = perform(drainsHere: false) { state -> (Result<Void, KithError>, [Effect]) in
      let effects: [Effect]
      switch state.take(.open(store, policy), at: clock()) {
      case .failure(let error): return (.failure(error), [])
      case .success(let some): effects = some
      }
      for case .refusedStore(store, let error) in effects {
        return (.failure(KithError(error, store: store)), effects)
      }
      state.views[store] = view
      later = view.show(
        state.shell.replica.view(of: store), of: keys.id, reason: reason, superseded: superseded)
      return (.success(()), effects.filter { if case .view = $0 { false } else { true } })
    }
    for run in later { run() }
    try opened.get()
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
