import KithTerminal

/// A device of the account, as `peers` and `status` show it.
struct DeviceFacts: Equatable, Sendable {
  /// The device's id in hexadecimal.
  var id: String
  /// The device's name.
  var name: String
  /// The device's id in the form that people compare.
  var fingerprint: String
  /// Whether this is the answering device.
  var isSelf = false
  /// Whether there is a session with it.
  var isConnected = false
  /// Whether the session exchanges stores.
  var isExchanging = false
  /// The time since the session was last heard, in milliseconds, if it exceeds ``longestPause``;
  /// otherwise nil.
  var silentMilliseconds: UInt64?
  /// Whether this device dialled.
  var isDialled = false
  /// The addresses of the device, or those where it may be reached.
  var addresses: [String] = []
  /// The time when it was last heard, in milliseconds since 1970.
  var lastSeenMilliseconds: UInt64?
  /// Its clock minus this device's, in milliseconds.
  var clockOffsetMilliseconds: Int64?

  /// The longest normal silence, in milliseconds: a device sends something at least every 30 s.
  static let longestPause: UInt64 = 40_000

  /// Whether stores are exchanged with it, as far as is known.
  var isInTouch: Bool { isExchanging && silentMilliseconds == nil }

  /// The state in a word or two, and its tone.
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
