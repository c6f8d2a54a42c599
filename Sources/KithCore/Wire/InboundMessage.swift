internal import KithCrypto
internal import SwiftProtobuf

/// A message from a peer, decoded and with every check made that needs no state. Signatures and
/// digests are the costly part of replication, and may be checked outside any lock, many at once.
package struct InboundMessage: Sendable {
  enum Body {
    case records([CheckedRecord])
    case have(Have)
    case batch(BatchPart)
    case addresses([DeviceID: [String]])
    case done
  }

  let body: Body
  /// Whether it holds membership records, which may have the whole roster evaluated.
  package var isRecords: Bool { if case .records = body { true } else { false } }
  /// The message's size, in bytes.
  let size: Int
  /// How to do many things at once with its contents; nil: one after the other.
  let repeater: Repeater?

  /// Decodes a message and checks its signatures; nil if it is malformed: then the session is to be
  /// closed.
  ///
  /// - Parameters:
  ///   - bytes: the message, not larger than ``Limits/messageBytes``.
  ///   - account: the account that signatures are made for.
  ///   - concurrently: how to check and open many things at once; nil: one after the other.
  /// - Complexity: O(*n*) in the bytes, and a signature check for each change set.
  package init?(
    decoding bytes: [UInt8], account: AccountID, concurrently: Repeater? = nil
  ) {
    guard bytes.count <= Limits.messageBytes, MessageOutline.session.permits(bytes),
      let wire = try? WireMessage(serializedBytes: bytes)
    else { return nil }
    size = bytes.count
    repeater = concurrently
    switch wire.body {
    case .records(let records):
      guard bytes.count <= Limits.recordsMessageLimitBytes,
        (1...Limits.recordsPerMessage).contains(records.records.count)
      else { return nil }
      var decoded: [Record] = []
      for record in records.records {
        guard let record = try? Record(decoding: record.encodedBytes()) else { return nil }
        decoded.append(record)
      }
      body = .records(decoded.map { CheckedRecord($0, account: account) })
    case .have(let have):
      guard let have = Have(have) else { return nil }
      body = .have(have)
    case .batch(let batch):
      guard let part = BatchPart(batch, account: account, concurrently: concurrently) else {
        return nil
      }
      body = .batch(part)
    case .addresses(let addresses):
      guard let decoded = [DeviceID: [String]](addresses.devices) else { return nil }
      body = .addresses(decoded)
    case .done: body = .done
    case nil: return nil
    }
  }
}
