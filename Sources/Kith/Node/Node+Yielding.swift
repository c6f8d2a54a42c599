extension Node {
  /// Whether the program gives the directory to a node that insists on it.
  enum Yielding {
    case refused
    case offered(onRequest: @Sendable () -> Void)
    case requested
  }

  /// Whether the program is to close the node, so that another process can open the directory.
  var isYielding: Bool {
    yielding.withLock { if case .requested = $0 { true } else { false } }
  }

  /// Asks the program to close the node.
  ///
  /// - Throws: ``KithError`` with `inUse` if the program insists on the directory.
  func yield() throws(KithError) {
    let request = try yielding.withLock { yielding throws(KithError) -> (@Sendable () -> Void)? in
      switch yielding {
      case .refused:
        throw KithError(
          .inUse, "The directory's node stays. Stop it first.", path: configuration.directory)
      case .offered(let onRequest):
        yielding = .requested
        return onRequest
      case .requested: return nil
      }
    }
    request?()
  }
}
