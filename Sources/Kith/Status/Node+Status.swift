internal import Glibc
internal import KithCore

extension Node {
  /// The current status.
  ///
  /// - Complexity: O(*d* · *c*) in devices and chains, O(*a* log *a*) in addresses, and O(*n*) in
  ///   the keys of changed stores, for their digests.
  package var status: NodeStatus {
    var (status, isRunning, problem) = engine.state.withLock { state in
      (state.shell.replica.status(), state.isRunning, state.problem)
    }
    status.directory = configuration.directory
    status.processID = isRunning ? getpid() : nil
    status.listening = listeningAddresses
    status.discovery = discovery.withLock { $0 }?.status
    status.addresses = addresses(beside: status.devices, status.peers)
    status.carriers = carrierStatuses
    status.problems =
      [problem, opened.refusal.map { KithError($0) }].compactMap { $0.map(NodeStatus.Problem.init) }
      + status.findings.map(NodeStatus.Problem.init)
    status.stores.removeAll(where: \.identifier.isReserved)
    return status
  }

  /// The carriers in use, and some of those that are above the limit: a person must learn of it.
  private var carrierStatuses: [NodeStatus.Carrier] {
    let known = knownCarriers
    let unused = known.dropFirst(Limits.carriers).prefix(CarrierList.mostUnusedShown)
    let left = unused.map { settings -> NodeStatus.Carrier in
      var carrier = NodeStatus.Carrier(
        kind: settings.kind, location: settings.location, isShared: settings.isShared)
      carrier.problem =
        "It is not used: a device uses \(Limits.carriers) carriers, its own first, and "
        + "\(known.count) are known here. Remove those that no device needs: kith carrier remove."
      return carrier
    }
    return known.prefix(Limits.carriers).map { carrierStatus($0) } + left
  }

  private func carrierStatus(_ settings: CarrierSettings) -> NodeStatus.Carrier {
    var carrier = NodeStatus.Carrier(
      kind: settings.kind, location: settings.location, isShared: settings.isShared)
    let id = settings.id
    let problem = engine.state.withLock { $0.carriers }.problem(of: id)
    engine.read { $0.describe(&carrier, id) }
    carrier.problem = problem?.failure.message
    carrier.problemMilliseconds = problem?.milliseconds
    if configuration.carriers == nil, engine.state.withLock({ $0.isRunning }) {
      carrier.problem = "The program that runs the node uses no carriers."
    }
    return carrier
  }

  /// The status now and after each change, until the node is closed or the task cancelled. A slow
  /// consumer gets only the latest.
  package var statusUpdates: some AsyncSequence<NodeStatus, Never> & Sendable {
    Updates<NodeStatus> { last in
      for await () in self.engine.progress {
        let status = self.status
        if status != last { return status }
      }
      return nil
    }
  }
}

/// A value now, and after each change; a slow reader gets only the latest.
struct Updates<Element: Equatable & Sendable>: AsyncSequence, Sendable {
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let after: @Sendable (_ last: Element?) async -> Element?
    fileprivate var last: Element?

    mutating func next() async -> Element? {
      last = await after(last)
      return last
    }
  }

  /// Waits until the value differs from the last one; nil at the end.
  let after: @Sendable (_ last: Element?) async -> Element?

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(after: after) }
}
