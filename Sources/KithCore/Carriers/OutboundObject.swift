internal import KithCrypto

/// An object to put, whose change sets are read from storage when it is made.
///
/// Like a ``StoredBatch``, its content is the storage's at its position among the effects.
package struct OutboundObject: Sendable {
  var body: ObjectBody
  /// Encoded messages of records.
  let records: [[UInt8]]
  var batches: [StoredBatch]
  var seal: SealedObject.Seal

  package var name: ObjectName { seal.name }

  /// About how many bytes it takes.
  var byteCount: Int { batches.reduce(Limits.smallestObjectBytes) { $0 + $1.byteCount } }

  /// Makes the object. Nil if storage lacks something of it: the object would cover entries that it
  /// lacks.
  ///
  /// - Complexity: O(*n*) in the bytes.
  package func sealed(from storage: any ReplicaStorage) throws(StorageError) -> [UInt8]? {
    var messages = records
    for batch in batches {
      let missing = try batch.forEachMessage(from: storage) { messages.append($0) }
      guard missing == 0 else { return nil }
    }
    return SealedObject.seal(body.encoded(with: messages), seal)
  }
}
