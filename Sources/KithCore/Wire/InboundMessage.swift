internal import KithCrypto
internal import SwiftProtobuf

/// A message from a peer, decoded, with every check that needs no state. Its signatures and digests
/// are the main cost of replication; they are checked outside any lock, many at once.
package struct InboundMessage: Sendable {
  enum Body {
    case records([CheckedRecord])
    case have(Have)
    case batch(BatchPart)
    case addresses([DeviceID: [String]])
    case done
  }

  private(set) var body: Body
  /// The bytes that count as records: each signature takes processor time, a peer can repeat them,
  /// and a message may cause the whole roster to be evaluated.
  package var recordCost: Int {
    switch body {
    case .records: max(size, Limits.recordsMessageCost)
    case .have, .batch, .addresses, .done: 0
    }
  }
  /// A full `Have`, which devices repeat while nothing changes.
  package var isFullHave: Bool {
    if case .have(let have) = body { have.isWhole && have.listsAll } else { false }
  }
  let size: Int
  let repeater: Repeater?

  /// Opens the entries of its change sets, which judging would do otherwise.
  package mutating func open(with opener: EntryOpener) {
    guard case .batch(var part) = body else { return }
    var opener = opener
    part.changeSets = opener.open(part.changeSets, concurrently: repeater)
    body = .batch(part)
  }

  /// Decodes a message and checks its signatures for the account; if nil, close the session.
  ///
  /// O(*n*) in the bytes, which are at most ``Limits/messageBytes``, and a signature check for each
  /// change set. Without a repeater, checks run one after the other.
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

extension TokenBucket {
  /// Limits the ``InboundMessage/recordCost`` of one session. A session that costs more is paused
  /// until the excess is refilled.
  package static var ofRecords: TokenBucket {
    TokenBucket(Limits.recordBurstBytes, per: Limits.recordBurstMilliseconds)
  }
}

extension InboundMessage {
  /// Calls its body with every index below a count, maybe on several threads at once, and returns
  /// after all calls, like `DispatchQueue.concurrentPerform(iterations:execute:)`. The body may live
  /// on a little longer.
  package typealias Repeater =
    @Sendable (_ count: Int, _ body: @escaping @Sendable (Int) -> Void) -> Void
}

/// Returns a pure function's values for every index below `count`, in order.
///
/// The repeater gets one call for each `piece` of values; without a repeater, the calls come one
/// after the other.
func values<Value: Sendable>(
  _ count: Int, by piece: Int, with repeater: InboundMessage.Repeater?,
  _ value: @escaping @Sendable (Int) -> Value
) -> [Value] {
  guard let repeater, count > piece else { return (0..<count).map(value) }
  return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
    // Each call writes only its own elements, and all calls return before the array is read.
    nonisolated(unsafe) let target = buffer.baseAddress
    repeater((count + piece - 1) / piece) { number in
      for index in (number * piece)..<min(count, (number + 1) * piece) {
        target?.advanced(by: index).initialize(to: value(index))
      }
    }
    initialized = count
  }
}
