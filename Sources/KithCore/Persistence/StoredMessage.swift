internal import KithCrypto

/// A message of a batch whose change sets lie in storage: boxes are not kept in memory, and are read
/// when they are sent.
///
/// What it holds is what storage holds at its place among the effects. A shell that joins several
/// persists into one commit calls ``Swift/Array/filled(from:)`` before that commit.
public struct StoredMessage: Hashable, Sendable {
  let frame: BatchFrame
  /// Names of the change sets, in order.
  let changeSets: [ChangeSetReference]
  /// About its size, in bytes.
  public let byteCount: Int

  /// The store that it is about.
  public var store: StoreIdentifier { frame.store }

  /// The encoded message.
  ///
  /// - Throws: what storage reports; `damaged` if a change set does not hold any more.
  /// - Complexity: O(*n*) in the bytes.
  public func encoded(from storage: any ReplicaStorage) throws(StorageError) -> [UInt8] {
    encoded(try storage.changeSets(changeSets, in: store))
  }

  /// The encoded message of change sets as they stand in storage.
  package func encoded(_ stored: [StoredChangeSet?]) -> [UInt8] {
    frame.encoded(stored.compactMap { $0?.wire })
  }
}

extension [Effect] {
  /// The effects with those stored messages encoded that hold a change set of which these effects
  /// themselves remove something: once all of it is committed it cannot be read any more.
  ///
  /// - Parameter storage: what was committed before any of these effects.
  /// - Returns: The effects, in the same order.
  /// - Throws: What storage reports.
  public func filled(from storage: any ReplicaStorage) throws(StorageError) -> [Effect] {
    var sent = Set<Place>()
    for case .sendStored(_, let message) in self {
      for reference in message.changeSets {
        sent.insert(Place(store: message.store, reference: reference))
      }
    }
    guard !sent.isEmpty else { return self }
    var removed = Set<Place>()
    for case .persist(let mutations) in self {
      for mutation in mutations {
        switch mutation {
        case .removeEntry(let store, let reference, _), .removeChangeSet(let store, let reference):
          removed.insert(Place(store: store, reference: reference))
        default: break
        }
      }
    }
    removed.formIntersection(sent)
    guard !removed.isEmpty else { return self }
    var overlay: [Place: StoredChangeSet?] = [:]
    func read(_ place: Place) throws(StorageError) -> StoredChangeSet? {
      if let known = overlay[place] { return known }
      return try storage.changeSet(place.reference, in: place.store)
    }
    var filled = self
    for (index, effect) in enumerated() {
      switch effect {
      case .persist(let mutations):
        for mutation in mutations {
          guard let place = mutation.place, removed.contains(place) else { continue }
          var changeSet = try read(place)
          mutation.apply(to: &changeSet)
          overlay.updateValue(changeSet, forKey: place)
        }
      case .sendStored(let session, let message):
        let store = message.store
        guard
          message.changeSets.contains(where: {
            removed.contains(Place(store: store, reference: $0))
          })
        else { continue }
        var changeSets: [StoredChangeSet?] = []
        for reference in message.changeSets {
          changeSets.append(try read(Place(store: store, reference: reference)))
        }
        filled[index] = .send(session, message.encoded(changeSets))
      default: break
      }
    }
    return filled
  }
}

/// Where a change set is kept.
private struct Place: Hashable {
  var store: StoreIdentifier
  var reference: ChangeSetReference
}

extension Mutation {
  /// The change set that it is about.
  fileprivate var place: Place? {
    switch self {
    case .putHeader(let store, let reference, _, _), .removeChangeSet(let store, let reference),
      .putEntry(let store, let reference, _, _), .removeEntry(let store, let reference, _):
      Place(store: store, reference: reference)
    default: nil
    }
  }

  fileprivate func apply(to changeSet: inout StoredChangeSet?) {
    switch self {
    case .putHeader(_, _, let header, let signature):
      changeSet = StoredChangeSet(
        header: header, signature: signature, entries: changeSet?.entries ?? [:])
    case .removeChangeSet: changeSet = nil
    case .putEntry(_, _, let index, let box): changeSet?.entries[index] = box
    case .removeEntry(_, _, let index): changeSet?.entries[index] = nil
    default: break
    }
  }
}
