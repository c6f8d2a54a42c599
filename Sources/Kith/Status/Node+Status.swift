internal import Glibc
internal import KithCore

extension Node {
  /// The current status.
  ///
  /// - Complexity: O(*d* · *c*) in devices and chains, and O(*n*) in the keys of changed stores,
  ///   for their digests.
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

  /// The status now and after each change, until the node is closed or the task cancelled. A slow
  /// consumer gets only the latest.
  package var statusUpdates: NodeStatusUpdates { NodeStatusUpdates(node: self) }
}

package struct NodeStatusUpdates: AsyncSequence, Sendable {
  package struct AsyncIterator: AsyncIteratorProtocol {
    let node: Node
    var seen: UInt64?

    /// Waits until the status has changed since the last one; nil at the end.
    package mutating func next() async -> NodeStatus? {
      let signal = node.engine.progress
      if let seen { await signal.wait(after: seen) }
      guard !Task.isCancelled, !signal.isFinished else { return nil }
      seen = signal.version
      return node.status
    }
  }

  let node: Node

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(node: node) }
}
