internal import KithCore

/// The stores of another process's node.
enum Attachment {
  /// The account of the node that serves a directory; nil where none answers.
  static func report(_ directory: String) -> AccountID? { nil }

  static func open(
    _ store: StoreIdentifier, _ policy: Policy, in directory: String,
    onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> (any StoreBacking, StoreView) {
    throw KithError(.inUse, "Another process has the directory open.", path: directory)
  }

  static func open(
    _ view: StoreView, _ policy: Policy, reason: Change.Reason, in directory: String,
    onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> any StoreBacking {
    throw KithError(.inUse, "Another process has the directory open.", path: directory)
  }

  static func hasEnded(_ stores: [KeyValueStore]) -> Bool { false }
  static func stop(_ stores: [KeyValueStore]) {}
  static func pending(_ store: KeyValueStore) -> [[KithCore.Operation]] { [] }
  static func close(_ stores: [KeyValueStore]) {}
}
