internal import Glibc
internal import KithCore

extension Node {
  /// The status of the node, its peers and its stores now.
  ///
  /// - Complexity: O(*d* · *c*) in devices and chains of change sets, and O(*n*) in the keys of
  ///   stores that have changed, for their digests.
  package var status: NodeStatus {
    var (status, isRunning, problem) = engine.state.withLock { state in
      (state.shell.replica.status(), state.isRunning, state.problem)
    }
    status.directory = configuration.directory
    status.processID = isRunning ? getpid() : nil
    status.listening = listeningAddresses
    status.discovery = discovery.withLock { $0 }?.status
    status.problems =
      (problem.map { [NodeStatus.Problem($0)] } ?? [])
      + status.findings.map(NodeStatus.Problem.init)
    return status
  }

  /// The status now and whenever it changes. A slow consumer gets only the latest. It ends when the
  /// node is closed or the task cancelled.
  package var statusUpdates: NodeStatusUpdates { NodeStatusUpdates(node: self) }
}

/// The statuses of a node; see ``Node/statusUpdates``.
package struct NodeStatusUpdates: AsyncSequence, Sendable {
  /// Takes the statuses.
  package struct AsyncIterator: AsyncIteratorProtocol {
    let node: Node
    var seen: UInt64?

    /// The status, once it has changed since the one before; nil at the end.
    package mutating func next() async -> NodeStatus? {
      let signal = node.engine.progress
      if let seen { await signal.wait(after: seen) }
      guard !Task.isCancelled, !signal.isFinished else { return nil }
      seen = signal.version
      return node.status
    }
  }

  let node: Node

  /// An iterator, which begins with the status now.
  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(node: node) }
}
