import KithTerminal

/// A device of the account, as `peers` and `status` show it.
struct DeviceFacts: Equatable, Sendable {
  /// Its id in hexadecimal.
  var id: String
  /// Its name.
  var name: String
  /// Its id in the form that people compare.
  var fingerprint: String
  /// Whether this is the device that answers.
  var isSelf = false
  /// Whether there is a session with it.
  var isConnected = false
  /// Whether stores are exchanged on that session.
  var isExchanging = false
  /// For how long nothing was heard on that session, in milliseconds, where that is longer than any
  /// device that is there lets pass; nil otherwise.
  var silentMilliseconds: UInt64?
  /// Whether this side dialled.
  var isDialled = false
  /// Where it is, or may be met.
  var addresses: [String] = []
  /// When it was last heard, in milliseconds since 1970.
  var lastSeenMilliseconds: UInt64?
  /// Its clock less ours, in milliseconds.
  var clockOffsetMilliseconds: Int64?

  /// A device says something at least every 30 s.
  static let longestPause: UInt64 = 40_000

  /// Whether stores are exchanged with it, as far as can be known.
  var isInTouch: Bool { isExchanging && silentMilliseconds == nil }

  /// How it is doing, in a word or two, and how good that is.
  var state: (text: String, tone: Style.Tone) {
    if isSelf { return ("this device", .plain) }
    if isExchanging, let silence = silentMilliseconds {
      return ("silent for \(silence / 1_000) s", .warning)
    }
    if isExchanging { return ("in touch", .good) }
    if isConnected { return ("connected, not exchanging", .warning) }
    return ("away", .faint)
  }

  /// The device in JSON.
  var document: Document {
    .object([
      "addresses": .strings(addresses),
      "clockOffsetMilliseconds": clockOffsetMilliseconds.map { .value(.integer($0)) },
      "connected": .bool(isConnected),
      "dialled": isConnected ? .bool(isDialled) : nil,
      "exchanging": .bool(isExchanging),
      "fingerprint": .string(fingerprint),
      "id": .string(id),
      "lastSeenMilliseconds": .int(lastSeenMilliseconds),
      "name": .string(name),
      "self": .bool(isSelf),
      "silentMilliseconds": .int(silentMilliseconds),
    ])
  }
}
