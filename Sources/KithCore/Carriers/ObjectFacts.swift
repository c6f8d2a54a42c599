internal import KithCrypto

/// The content of an object, for checkers.
package struct ObjectFacts: Sendable {
  package var author: DeviceID
  package var isHandover: Bool
  /// The same in all parts of a parcel.
  package var group: UInt64
  /// The vectors that its reader covers before, and afterwards.
  package var stores: [StoreIdentifier: (above: [ChainID: UInt64], through: [ChainID: UInt64])]
  package var replaces: [ObjectName]
  /// The statements inside, and whether it has records.
  package var statements: Int
  package var hasRecords: Bool
  package var messages: [InboundMessage]
}

extension OpenedObject {
  /// Nil: it does not open.
  package var facts: ObjectFacts? {
    switch content {
    case .unreadable: nil
    case .parcel(let parcel, let messages):
      ObjectFacts(parcel, messages, isHandover: false)
    case .handover(let parcel, let messages, _):
      ObjectFacts(parcel, messages, isHandover: true)
    }
  }
}

extension ObjectOpener {
  /// Whether an epoch made the name of which this device has the key.
  package func recognises(_ name: ObjectName) -> Bool { name.origin(among: epochs) != nil }
}

extension ObjectFacts {
  fileprivate init(_ parcel: Parcel, _ messages: [InboundMessage], isHandover: Bool) {
    self.init(
      author: parcel.author, isHandover: isHandover, group: parcel.part.group,
      stores: Dictionary(
        parcel.stores.map { ($0.have.store, (above: $0.above, through: $0.have.vector)) },
        uniquingKeysWith: { first, _ in first }),
      replaces: parcel.replaces, statements: parcel.said.count,
      hasRecords: parcel.rosterDigest != nil, messages: messages)
  }
}
