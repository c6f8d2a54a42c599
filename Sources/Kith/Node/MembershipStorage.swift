internal import KithCore

/// Storage that reads only membership. It commits every mutation.
final class MembershipStorage: ReplicaStorage {
  private let storage: any ReplicaStorage

  init(_ storage: any ReplicaStorage) { self.storage = storage }

  /// The next full opening decides whether the directory is a copy.
  var isCopy: Bool { false }

  func outline() throws(StorageError) -> StorageOutline {
    var snapshot = try storage.outline().snapshot
    snapshot.stores = [:]
    return StorageOutline(snapshot)
  }

  func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] { keys.map { _ in nil } }

  func commit(_ mutations: [Mutation]) throws(StorageError) { try storage.commit(mutations) }
}
