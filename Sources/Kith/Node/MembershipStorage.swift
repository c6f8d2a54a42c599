internal import KithCore

/// Storage of which membership alone is read. It commits every mutation.
final class MembershipStorage: ReplicaStorage {
  private let storage: any ReplicaStorage

  init(_ storage: any ReplicaStorage) { self.storage = storage }

  /// Whether the directory is a copy is for the next opening to settle.
  var isCopy: Bool { false }

  func outline() throws(StorageError) -> StorageOutline {
    var snapshot = try storage.outline().snapshot
    snapshot.stores = [:]
    return StorageOutline(snapshot)
  }

  func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?] { references.map { _ in nil } }

  func commit(_ mutations: [Mutation]) throws(StorageError) { try storage.commit(mutations) }
}
