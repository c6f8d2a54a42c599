internal import KithCrypto

/// An object to put, whose change sets are read from storage when it is made.
///
/// Like a ``StoredBatch``, its content is the storage's at its place among the effects.
package struct OutboundObject: Sendable {
  package let name: ObjectName
  var parcel: Parcel
  /// Encoded messages of records.
  let records: [[UInt8]]
  var batches: [StoredBatch]
  let account: AccountID
  let epoch: EpochKeys
  let keys: DeviceKeys
  let nonce: BoxNonce
  /// Of a handover: the older epoch, and the boxes for the members.
  var handover: (older: EpochKeys, boxes: [[UInt8]], nonce: BoxNonce)?

  /// About how many bytes it takes.
  var byteCount: Int { batches.reduce(Limits.smallestObjectBytes) { $0 + $1.byteCount } }

  /// Makes the object. Nil if storage lacks something of it: the object would say more than it
  /// brings.
  ///
  /// - Complexity: O(*n*) in the bytes.
  package func sealed(from storage: any ReplicaStorage) throws(StorageError) -> [UInt8]? {
    var messages = records
    for batch in batches {
      let missing = try batch.forEachMessage(from: storage) { messages.append($0) }
      guard missing == 0 else { return nil }
    }
    let sealed = SealedObject.seal(
      parcel.encoded(with: messages), named: name, under: epoch, in: account, by: keys,
      nonce: nonce)
    guard let handover else { return sealed }
    return Handover(to: epoch.id, boxes: handover.boxes, parcel: sealed)
      .sealed(under: handover.older, nonce: handover.nonce)
  }
}
