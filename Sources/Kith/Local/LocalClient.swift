internal import KithStorage

/// The node that has a directory open. Each request makes its own connection.
package struct LocalClient: NodeAccess {
  private let directory: String

  package init(directory: String) {
    self.directory = directory
  }

  /// Throws `control` if no node could serve a device in the directory: its path is too long.
  package static func checkPath(of directory: String) throws(KithError) {
    _ = try LocalSocket.address(of: DeviceDirectory.controlSocketPath(directory))
  }

  package func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    let directory = directory
    let node = try await BlockingThread.run { () throws(KithError) in
      try RemoteNode.reach(directory)
    }
    defer { node.close() }
    let result = await withTaskCancellationHandler {
      await Result(awaiting: { () async throws(KithError) in
        try await node.perform(call, onEvent: onEvent)
      })
    } onCancel: {
      node.close()
    }
    switch result {
    case .success(let answer): return answer
    case .failure where Task.isCancelled:
      throw KithError(.cancelled, "The request was cancelled.")
    case .failure(let error): throw error
    }
  }
}
