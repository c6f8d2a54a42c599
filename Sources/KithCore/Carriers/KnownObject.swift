internal import KithCrypto

/// A device's note of an object on a carrier. It is stored, so that a device that is on for a
/// moment reads each object once.
struct KnownObject: Hashable, Sendable {
  enum State: Hashable, Sendable {
    /// It was not read, or it was read and waits in memory (``Carrier/waiting``).
    case unread
    /// It did not open, first at this time.
    case unreadable(since: UInt64)
    /// Its epoch or its author is unknown. It is read again once `isDue`: something changed that may
    /// have been the reason.
    case foreign(isDue: Bool)
    /// It was taken in, except parts of these stores: of them something could not be judged, or the
    /// limits differ.
    case applied(ObjectBody, without: Set<StoreIdentifier>)
  }

  var state: State
  var bytes: Int
  /// Times in milliseconds since 1970. Since when it is known to listings, at its size; nil: none
  /// showed it.
  var seenSince: UInt64?
  /// Since when listings lack it, or show another size.
  var missingSince: UInt64?

  /// Whether the last listing showed it, at its size.
  var isThere: Bool { seenSince != nil && missingSince == nil }

  /// The body of an object that was taken in, whole or in part.
  var body: ObjectBody? {
    if case .applied(let body, _) = state { body } else { nil }
  }

  /// The clock may have been set back since its times were noted.
  mutating func setBack(to now: UInt64) {
    seenSince = seenSince.map { min($0, now) }
    missingSince = missingSince.map { min($0, now) }
    if case .unreadable(let since) = state { state = .unreadable(since: min(since, now)) }
  }
}

extension KnownObject {
  private enum Code: UInt32 {
    case unread = 0
    case unreadable = 1
    case foreign = 2
    case applied = 3
  }

  /// An object that was not taken in whole is read again after a start.
  func encoded() -> [UInt8] {
    var wire = WireStoredObject()
    wire.bytes = UInt64(bytes)
    wire.seenSince = seenSince ?? 0
    wire.missingSince = missingSince ?? 0
    switch state {
    case .unread: wire.state = Code.unread.rawValue
    case .unreadable(let since):
      wire.state = Code.unreadable.rawValue
      wire.unreadableSince = since
    case .foreign: wire.state = Code.foreign.rawValue
    case .applied(let body, let left):
      wire.state = (left.isEmpty ? Code.applied : .unread).rawValue
      guard left.isEmpty else { break }
      wire.epoch = .init(body.epoch.bytes)
      wire.body = .init(body.encoded())
    }
    return wire.encodedBytes()
  }

  /// Nil if malformed: it is read again.
  init?(decoding bytes: [UInt8], account: AccountID) {
    guard let wire = try? WireStoredObject(serializedBytes: bytes),
      let code = Code(rawValue: wire.state)
    else { return nil }
    self.bytes = Int(clamping: wire.bytes)
    seenSince = wire.seenSince == 0 ? nil : wire.seenSince
    missingSince = wire.missingSince == 0 ? nil : wire.missingSince
    switch code {
    case .unread: state = .unread
    case .unreadable: state = .unreadable(since: wire.unreadableSince)
    case .foreign: state = .foreign(isDue: true)
    case .applied:
      guard let epoch = try? Digest256(wire.epoch),
        let decoded = ObjectBody.decode(
          [UInt8](wire.body), account: account, epoch: EpochID(epoch))
      else { return nil }
      state = .applied(decoded.body, without: [])
    }
  }
}
