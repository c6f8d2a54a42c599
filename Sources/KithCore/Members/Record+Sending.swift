internal import KithCrypto

extension Record {
  /// Records that others depend on are sent first.
  static func isSentBefore(_ left: Record, _ right: Record) -> Bool {
    (left.kind.rank, left.id) < (right.kind.rank, right.id)
  }
}

extension Record.Kind {
  var rank: Int {
    switch self {
    case .genesis: 0
    case .certificate: 1
    case .revocation: 2
    case .epoch: 3
    case .lockbox: 4
    case .rename: 5
    case .unknown: 6
    }
  }
}

extension CheckedRecord {
  var isRevocation: Bool {
    if case .revocation = record.kind { true } else { false }
  }

  /// Whether it may be a step of a path.
  var isProof: Bool {
    switch record.kind {
    case .genesis, .certificate: true
    default: false
    }
  }
}

extension [Record] {
  /// Packs the records into messages, in this order.
  func messages() -> [[UInt8]] {
    var messages: [[UInt8]] = []
    var message = WireMessage()
    var bytes = 0
    func close() {
      guard bytes > 0 else { return }
      messages.append(message.encodedBytes())
      (message, bytes) = (WireMessage(), 0)
    }
    for record in self {
      let encoded = record.encoded
      if bytes + encoded.count > Limits.recordsMessageBytes { close() }
      guard let wire = try? WireRecord(serializedBytes: encoded) else { continue }
      message.records.records.append(wire)
      bytes += encoded.count
    }
    close()
    return messages
  }
}
